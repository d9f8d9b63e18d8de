// Opens every view of the web page in a browser: no console message, no request to another server, no
// violation of WCAG AA, and the path of a newcomer. With SCREENSHOTS=DIR it stores a picture of each
// view, light and dark, wide and narrow.
//   node pages.mjs ADDRESS CHROMIUM
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [address, program] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.SCREENSHOTS;
const wrong = [];

// Views of the demonstration; those of single skills and commits are added when their ids are known.
const VIEWS = {
  overview: "/",
  search: "/search?q=what+tea+does+Ann+prefer&budget=400",
  nothing: "/search?q=xyzzy",
  records: "/records",
  record: "/records/demo-tea",
  delete: "/records/demo-tea/delete",
  history: "/history",
  conversations: "/conversations",
  conversation: "/conversations/visit-plan?user=ann",
  skills: "/skills",
  agents: "/agents",
  admin: "/admin",
  audit: "/admin/audit",
  remove: "/demo/remove",
  missing: "/records/none",
};
// Views of the server's own tenant.
const OWN_VIEWS = { agents: "/agents", agent: "/agents/reviewer", team: "/teams/core", entry: "/sign-in" };

const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });

async function visitor(options) {
  const context = await browser.newContext({ baseURL: address, ...options });
  const page = await context.newPage();
  page.on("console", (message) => {
    // The browser itself reports the status of the view for missing records, and of a wrong key.
    if (!/404 \(Not Found\)|401 \(Unauthorized\)/.test(message.text())) wrong.push(`${page.url()}: console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`${page.url()}: ${error}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(address)) wrong.push(`${page.url()} asks ${request.url()}`);
  });
  await page.addInitScript(() => {
    window.shift = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
  });
  return page;
}

// The policy of the page allows no script that is added to it; the debugger is not bound by it.
async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() =>
    window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
  return found.violations.map((one) => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`);
}

async function expect(page, words) {
  await page.getByText(words).first().waitFor({ timeout: 10_000 }).catch(() => wrong.push(`${page.url()}: no ${words}`));
}

async function newcomer() {
  const page = await visitor({});
  await page.goto("/");
  await expect(page, "This memory is empty");
  if (pictures) await page.screenshot({ path: `${pictures}/empty.png`, fullPage: true });
  await page.getByRole("button", { name: "Load the demonstration" }).click();
  await expect(page, "demonstration memory");
  await page.keyboard.press("/");
  await page.waitForURL("**/search");
  await page.locator("#q").pressSequentially("tea for Ann", { delay: 30 });
  await page.locator("#hits mark").first().waitFor();
  await page.waitForURL("**/search?q=tea+for+Ann**");
  await page.getByText("Why this score").first().click();
  await expect(page, "importance");
  await page.locator("[data-row]").first().click();
  await expect(page, "Where it comes from");
  await page.goto("/records/demo-tea");
  await page.getByRole("link", { name: "Delete…" }).click();
  await expect(page, "derived records go with it");
  await page.getByRole("button", { name: "Delete" }).click();
  await expect(page, "Deleted.");
  await page.getByRole("button", { name: "Undo" }).first().click();
  await expect(page, "Undone.");
  await page.goto("/records/demo-tea");
  await expect(page, "oolong");
  const state = await page.context().storageState();
  await page.context().close();
  return state;
}

let checked = 0;
async function check(page, title) {
  await page.waitForLoadState("networkidle");
  const shift = await page.evaluate(() => window.shift);
  if (shift > 0.01) wrong.push(`${title}: the layout shifts by ${shift}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
  if (wide) wrong.push(`${title} is wider than the window`);
  for (const one of await violations(page)) wrong.push(`${title}: ${one}`);
  if (pictures) await page.screenshot({ path: `${pictures}/${title}.png`, fullPage: true });
  checked += 1;
}

async function look(name, options, state, views) {
  const page = await visitor({ storageState: state, ...options });
  for (const [view, path] of Object.entries(views)) {
    await page.goto(path);
    await check(page, `${view}-${name}`);
  }
  await page.context().close();
}

async function lookAll(state) {
  const page = await visitor({ storageState: state });
  for (const [view, list] of [["skill", "/skills"], ["commit", "/history"]]) {
    await page.goto(list);
    VIEWS[view] = await page.locator("[data-row]").first().getAttribute("href");
  }
  await page.context().close();
  const wide = { viewport: { width: 1280, height: 800 } };
  const narrow = { viewport: { width: 390, height: 800 } };
  const looks = [["light-wide", { ...wide, colorScheme: "light" }], ["dark-narrow", { ...narrow, colorScheme: "dark" }]];
  if (pictures) looks.push(["dark-wide", { ...wide, colorScheme: "dark" }], ["light-narrow", { ...narrow, colorScheme: "light" }]);
  for (const [name, options] of looks) {
    await look(name, options, state, VIEWS);
    await look(name, options, undefined, OWN_VIEWS);
  }
}

// Agents, teams and a webhook of the server's own tenant.
async function prepare() {
  const page = await visitor({});
  const post = (path, data) => page.request.post(path, { data, headers: { "content-type": "application/json" } });
  await post("/v1/agents", { agent: "reviewer", description: "Reviews <script>alert(1)</script>" });
  await post("/v1/teams", { team: "core", lead: "ada", members: ["bob"] });
  const webhook = await (await post("/v1/webhooks", { url: "https://hooks.invalid/" })).json();
  OWN_VIEWS.failed = `/admin/webhooks/${webhook.id}/failed`;
  OWN_VIEWS.unhook = `/admin/webhooks/${webhook.id}/delete`;
  await page.context().close();
}

// The main action of views that need more than the demonstration: a skill, a commit, an agent, a team.
async function actions(state) {
  const page = await visitor({ storageState: state });
  await page.goto("/skills");
  await page.locator("[data-row]").first().click();
  await expect(page, "Evidence");
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await expect(page, "Changed.");
  await page.goto("/history");
  await page.locator("[data-row]").first().click();
  await page.getByRole("button", { name: "Undo" }).first().click();
  await expect(page, "Undone.");
  await page.context().close();
  const own = await visitor({});
  await own.goto("/agents");
  await own.getByRole("link", { name: "reviewer" }).click();
  await expect(own, "Parts of the prompt");
  await own.goto("/agents");
  await own.getByRole("link", { name: "core", exact: true }).click();
  await expect(own, "Open handoffs");
  await own.getByRole("link", { name: "bob" }).first().click();
  await expect(own, "The prompt of");
  await own.goto(OWN_VIEWS.unhook);
  await own.getByRole("button", { name: "Delete" }).click();
  await own.waitForURL("**/admin");
  await expect(own, "No webhook sends changes");
  await own.context().close();
}

// With the first key the server closes; the key opens it again in the browser.
async function signIn() {
  const page = await visitor({});
  await page.goto("/admin");
  await page.getByText("New key").click();
  await page.locator("input[name=name]").fill("<img src=x onerror=alert(1)>");
  await page.getByRole("button", { name: "Create" }).first().click();
  await expect(page, "shown only now");
  const key = await page.locator("[data-copy] code").first().textContent();
  await page.goto("/records");
  for (let tries = 0; tries < 50 && !page.url().includes("/sign-in"); tries += 1) await page.reload();
  if (!page.url().includes("/sign-in")) wrong.push("a server with a key does not ask for it");
  await page.locator("input[name=key]").fill("mnemon_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page, "This key is not valid.");
  await page.locator("input[name=key]").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/records");
  await page.goto("/admin");
  await expect(page, "<img src=x");
  await page.getByRole("link", { name: "Revoke…" }).click();
  await expect(page, "stops working within a second");
  await check(page, "revoke");
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "Rotate…" }).click();
  await check(page, "rotate");
  await page.getByRole("button", { name: "Rotate" }).click();
  await expect(page, "shown only now");
  await check(page, "secret");
  await page.goto("/admin");
  if ((await page.getByRole("link", { name: "Rotate…" }).count()) !== 2) wrong.push("the old key and the new one overlap");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/sign-in**");
  await page.context().close();
}

// Reading works without the script.
async function plain(state) {
  const page = await visitor({ storageState: state, javaScriptEnabled: false });
  await page.goto("/search");
  await page.fill("#q", "tea");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/search?q=tea**");
  if (!(await page.locator("#hits mark").count())) wrong.push("a search without the script finds nothing");
  await page.context().close();
}

const state = await newcomer();
await prepare();
await lookAll(state);
await plain(state);
await actions(state);
await signIn();
await browser.close();
for (const one of wrong) console.log(one);
console.log(wrong.length ? `${wrong.length} problems` : `${checked} views are fine`);
process.exit(wrong.length ? 1 : 0);
