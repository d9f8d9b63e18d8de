// Measures every view of the web page in a browser: first paint, weight, and the time of a keystroke in
// the search. Exits with 1 if a limit is exceeded.
//   node measure.mjs ADDRESS CHROMIUM
import { chromium } from "playwright-core";

const [address, program] = process.argv.slice(2);
const PAINT_MS = 200, KEY_MS = 50, WEIGHT_BYTES = 150_000;
const LOADS = 7;
const QUERIES = ["what did the customer say about the invoice", "green tea in Vienna", "deploy failure timeout", "kalomi backup restore"];

const get = async (path) => (await fetch(address + path)).json();
const post = async (path, body) => {
  const sent = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await fetch(address + path, sent)).json();
};

// Objects that an import does not bring.
async function prepare() {
  await post("/v1/agents", { agent: "reviewer", description: "Reviews changes" });
  await post("/v1/teams", { team: "core", lead: "ada", members: ["bob"] });
  const steps = [{ tool: "run_tests", action: "run the whole suite" }];
  await post("/v1/skills/import", { skills: [{ use_when: "a release is prepared", tool_sops: steps }] });
}

async function views() {
  const [derived] = (await get("/v1/records?limit=200")).records.filter((one) => one.derived_from?.length);
  const { records: [newest] } = await get("/v1/records?limit=1");
  const { changes: [change] } = await get("/v1/history?limit=1");
  const { skills: [skill] } = await get("/v1/skills?limit=1");
  const id = encodeURIComponent((derived ?? newest).id);
  return {
    overview: "/",
    "search, empty": "/search",
    search: `/search?q=${encodeURIComponent(QUERIES[0])}&budget=2000`,
    records: "/records",
    "records by tag": "/records?tag=tag7&kind=note",
    record: `/records/${id}`,
    "delete a record": `/records/${id}/delete`,
    history: "/history",
    commit: `/history/${change.commit}`,
    conversations: "/conversations",
    conversation: "/conversations/long?user=user1",
    skills: "/skills",
    skill: `/skills/${encodeURIComponent(skill.id)}`,
    agents: "/agents",
    agent: "/agents/reviewer",
    team: "/teams/core",
    admin: "/admin",
    "audit log": "/admin/audit",
  };
}

const at = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
const ms = (value) => value.toFixed(1).padStart(7);
const kb = (bytes) => (bytes / 1000).toFixed(1).padStart(7);
const tooMuch = [];
const limit = (name, value, most, unit) => value > most && tooMuch.push(`${name}: ${value.toFixed(1)} ${unit}, the limit is ${most}`);

// Opens a view in a tab that is open already, and answers with the first paint since the navigation
// began and the bytes of all answers.
async function load({ page, debug }, path, isFirstVisit) {
  if (isFirstVisit) await debug.send("Network.clearBrowserCache");
  let [sent, whole] = [0, 0];
  const finished = (event) => (sent += event.encodedDataLength);
  const received = (event) => (whole += event.dataLength);
  debug.on("Network.loadingFinished", finished);
  debug.on("Network.dataReceived", received);
  await page.goto(path, { waitUntil: "load" });
  const measured = await page.evaluate(() => new Promise((done) => {
    const first = performance.getEntriesByType("navigation")[0].responseStart;
    new PerformanceObserver((list) => {
      const paint = list.getEntriesByName("first-contentful-paint")[0];
      if (paint) done({ paint: paint.startTime, first });
    }).observe({ type: "paint", buffered: true });
  }));
  debug.off("Network.loadingFinished", finished);
  debug.off("Network.dataReceived", received);
  return { ...measured, sent, whole };
}

async function paint(browser) {
  const context = await browser.newContext({ baseURL: address, viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const debug = await context.newCDPSession(page);
  await debug.send("Network.enable");
  const tab = { page, debug };
  // A line of text shows how long the browser itself takes.
  const all = { "(a line of text)": "/healthz", ...(await views()) };
  for (const path of Object.values(all)) await load(tab, path, false);
  console.log(`${"view".padEnd(18)} first byte   paint p50   paint max   first visit   sent KB   whole KB`);
  for (const [name, path] of Object.entries(all)) {
    const [loads, visits] = [[], []];
    for (let turn = 0; turn < LOADS; turn += 1) {
      visits.push(await load(tab, path, true));
      loads.push(await load(tab, path, false));
    }
    const paints = loads.map((one) => one.paint);
    const first = at(loads.map((one) => one.first), 0.5);
    const visit = at(visits.map((one) => one.paint), 0.5);
    const [{ sent, whole }] = visits;
    console.log(`${name.padEnd(18)} ${ms(first)} ms  ${ms(at(paints, 0.5))} ms  ${ms(Math.max(...paints))} ms   ${ms(visit)} ms  ${kb(sent)}   ${kb(whole)}`);
    limit(`first paint of ${name}`, at(paints, 0.5), PAINT_MS, "ms");
    limit(`first paint of ${name} at the first visit`, visit, PAINT_MS, "ms");
    limit(`weight of ${name}`, whole, WEIGHT_BYTES, "bytes");
  }
  await context.close();
}

function summary(name, values) {
  console.log(`${name.padEnd(44)} p50 ${ms(at(values, 0.5))} ms   p95 ${ms(at(values, 0.95))} ms   max ${ms(Math.max(...values))} ms   (${values.length})`);
  limit(name, at(values, 0.95), KEY_MS, "ms");
}

// The answer to each prefix of the queries, without a browser.
async function server() {
  const times = [];
  for (const query of QUERIES) {
    for (let end = 1; end <= query.length; end += 1) {
      const path = `/search?q=${encodeURIComponent(query.slice(0, end))}&part=hits`;
      const start = performance.now();
      await (await fetch(address + path)).text();
      times.push(performance.now() - start);
    }
  }
  summary("keystroke, answer of the server", times);
}

// Every key waits until its results are shown: from the input event to the first frame after the
// change. The page itself types, as a driver outside of it would take time from the browser.
async function keys(browser) {
  const page = await (await browser.newContext({ baseURL: address, viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto("/search");
  const times = await page.evaluate(async (queries) => {
    const [field, hits, { fetch }] = [document.querySelector("#q"), document.querySelector("#hits"), window];
    let shown, last, there;
    const frame = () => {
      there = performance.now();
      requestAnimationFrame(() => setTimeout(shown));
    };
    new MutationObserver(frame).observe(hits, { childList: true });
    // Results that stay the same change nothing on the page; the answer ends their time.
    window.fetch = async (path, options) => {
      const answer = await fetch(path, options);
      if (!String(path).includes("part=hits")) return answer;
      const text = await answer.text();
      if (text === last) frame();
      last = text;
      return new Response(text, { status: answer.status });
    };
    const all = [];
    for (const query of queries) {
      for (let end = 1; end <= query.length; end += 1) {
        field.value = query.slice(0, end);
        const since = performance.now();
        await new Promise((done) => {
          shown = done;
          field.dispatchEvent(new InputEvent("input", { bubbles: true }));
        });
        all.push([there - since, performance.now() - since]);
        await new Promise((done) => setTimeout(done, 50));
      }
    }
    return all;
  }, QUERIES);
  await page.context().close();
  summary("keystroke, until the page has the results", times.map(([there]) => there));
  summary("keystroke, until the browser has drawn them", times.map(([, shown]) => shown));
}

await prepare();
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const { records } = await get("/v1/stats");
console.log(`${records} records, Chromium ${browser.version()}, ${LOADS} loads of each view`);
// The first search loads the index.
await fetch(`${address}/search?q=tea&part=hits`);
await paint(browser);
await server();
await keys(browser);
await browser.close();
for (const one of tooMuch) console.log(`OVER THE LIMIT: ${one}`);
process.exit(tooMuch.length ? 1 : 0);
