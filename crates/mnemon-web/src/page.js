// Adds to pages that work without it: results as you type, live changes, copying, and keys.

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Replaces the content of an element by the fragment at an address. A newer request cancels an
// older one, so that answers cannot arrive in the wrong order.
const running = new WeakMap();
const shown = new WeakMap();
async function load(element, address) {
  running.get(element)?.abort();
  const control = new AbortController();
  running.set(element, control);
  try {
    const answer = await fetch(address, { signal: control.signal, credentials: "same-origin", redirect: "error" });
    if (!answer.ok) return false;
    if (answer.status === 204) return true;
    const html = await answer.text();
    if (shown.get(element) === html) return true;
    shown.set(element, html);
    element.innerHTML = html;
    decorate(element);
    return true;
  } catch {
    return false;
  }
}

// Search: hits at every key, the context when the typing pauses.
function live(form) {
  const hits = one("#hits"), context = one("#context"), query = one("#q", form);
  let pause;
  const address = (part) => {
    const fields = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    if (part) fields.set("part", part);
    return `/search?${fields}`;
  };
  const update = () => {
    load(hits, address("hits"));
    clearTimeout(pause);
    pause = setTimeout(() => {
      history.replaceState(null, "", address());
      load(context, address("context"));
    }, 200);
  };
  form.addEventListener("input", (event) => {
    if (event.target.name === "budget") one("output", form).value = event.target.value;
    if (!event.isComposing) update();
  });
  query.addEventListener("compositionend", update);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update();
    context && load(context, address("context"));
  });
}

// Parts that show the state of the memory are asked for again while the page is looked at.
function follow(element) {
  setInterval(() => {
    const isUsed = element.contains(document.activeElement);
    const shown = one("[data-seq]", element)?.dataset.seq ?? 0;
    if (!document.hidden && !isUsed) load(element, `${element.dataset.live}&after=${shown}`);
  }, 5000);
}

function decorate(within) {
  for (const box of all("[data-copy]", within)) {
    if (one("button", box) || !navigator.clipboard) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(one("code", box).textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    box.prepend(button);
  }
}

// The local time, only where the pointer is: making it for every row takes longer than the rows.
document.addEventListener("pointerover", ({ target }) => {
  if (target.tagName !== "TIME" || target.title) return;
  const at = new Date(target.dateTime);
  if (!Number.isNaN(at.valueOf())) target.title = at.toLocaleString();
});

// "/" goes to the search, "j" and "k" to the next and the previous row.
document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    const query = one("#q");
    if (query) query.select();
    else location.href = "/search";
  }
  if (event.key === "j" || event.key === "k") {
    const rows = all("[data-row]");
    const at = rows.indexOf(document.activeElement);
    const next = event.key === "j" ? at + 1 : Math.max(at - 1, 0);
    rows[Math.min(next, rows.length - 1)]?.focus();
  }
});

decorate(document);
all("[data-search]").forEach(live);
all("[data-live]").forEach(follow);
all("[data-auto]").forEach((form) => form.addEventListener("change", () => form.requestSubmit()));
