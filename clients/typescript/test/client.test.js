// The client against the real program.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";

import {
  ConflictError, InvalidError, Mnemon, MnemonError, NotFoundError, UnauthorizedError,
} from "../src/index.js";
import { OPERATIONS } from "../src/operations.js";
import { startServer } from "./server.js";

/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {Mnemon} */
let memory;

before(async () => {
  server = await startServer();
  memory = new Mnemon(server.url);
});
after(() => server.stop());

test("a record is stored, found, changed and deleted", async () => {
  const receipt = await memory.add({
    content: "Ann drinks green tea", user: "ann", tags: ["drink"], metadata: { lang: "en", rating: 4 },
  });
  const id = receipt.items[0]?.id ?? "";
  const hits = await memory.search({ query: "tea", user: "ann", filter: { rating: { $gte: 3 } } });
  assert.equal(hits.hits[0]?.record.content, "Ann drinks green tea");
  const edited = await memory.update(id, { content: "Ann drinks black tea", if_version: 1 });
  assert.equal(edited.version, 2);
  await assert.rejects(memory.update(id, { content: "x", if_version: 1 }), ConflictError);
  assert.equal((await memory.get(id)).records[0]?.content, "Ann drinks black tea");
  assert.equal((await memory.delete(id)).items[0]?.fate, "deleted");
  await assert.rejects(memory.get(id), NotFoundError);
});

test("ids with special characters reach the server as they are", async () => {
  const id = "a/b?c#d%20+é".replace("é", "e");
  await memory.add({ id, content: "special" });
  assert.equal((await memory.get(id)).records[0]?.id, id);
});

test("dates are sent as the API writes them", async () => {
  const created = new Date("2020-05-01T10:00:00Z");
  await memory.add({ content: "an old one", created, tags: ["dated"] });
  const until = await memory.list({ tags: ["dated"], until: new Date("2021-01-01T00:00:00Z") });
  assert.equal(until.records[0]?.created, "2020-05-01T10:00:00.000Z");
  assert.deepEqual((await memory.list({ tags: ["dated"], since: new Date("2021-01-01T00:00:00Z") })).records, []);
});

test("every page of a list is fetched", async () => {
  for (let n = 0; n < 7; n += 1) await memory.add({ content: `item ${n}`, tags: ["page", `n${n}`] });
  const contents = [];
  for await (const record of memory.listAll({ tags: ["page"], limit: 3 })) contents.push(record.content);
  assert.deepEqual(contents, [6, 5, 4, 3, 2, 1, 0].map((n) => `item ${n}`));

  for (let n = 0; n < 5; n += 1) await memory.chatAppend("talk", { content: `line ${n}` });
  const said = [];
  for await (const message of memory.chatTailAll("talk", { count: 2 })) said.push(message.content[0]?.["text"]);
  assert.deepEqual(said, [4, 3, 2, 1, 0].map((n) => `line ${n}`));
  for (const name of ["talk2", "talk3"]) await memory.chatAppend(name, { content: "hello" });
  const sessions = [];
  for await (const one of memory.chatListAll({ limit: 1 })) sessions.push(one.session);
  assert.deepEqual(sessions.sort(), ["talk", "talk2", "talk3"]);
  let changes = 0;
  for await (const change of memory.historyAll({ limit: 4 })) if (change.after?.tags?.includes("page")) changes += 1;
  assert.equal(changes, 7);
});

test("an error is an object of its class with the details of the server", async () => {
  const error = await memory.search(/** @type {any} */ ({ query: "tea", foo: 1 })).catch((e) => e);
  assert.ok(error instanceof InvalidError && error instanceof MnemonError);
  assert.equal(error.code, "invalid");
  assert.equal(error.status, 400);
  assert.equal(error.field, "foo");
  assert.match(error.requestId ?? "", /./);
  await assert.rejects(async () => memory.get(""), TypeError);
});

test("a key is needed where the server has one", async () => {
  const key = "a-key-with-enough-characters";
  const closed = await startServer({ key });
  try {
    await assert.rejects(new Mnemon(closed.url).stats(), UnauthorizedError);
    assert.equal((await new Mnemon({ url: `${closed.url}/`, key }).health()).status, "ok");
    await new Mnemon({ url: closed.url, key }).stats();
  } finally {
    await closed.stop();
  }
});

test("the same idempotency key stores once", async () => {
  const options = { idempotencyKey: "once-only" };
  const first = await memory.add({ content: "exactly once", tags: ["once"] }, options);
  const second = await memory.add({ content: "exactly once", tags: ["once"] }, options);
  assert.equal(first.items[0]?.id, second.items[0]?.id);
  assert.equal((await memory.list({ tags: ["once"] })).records.length, 1);
});

test("an export can be imported, with progress", async () => {
  await memory.add({ content: "to be carried", tags: ["carry"] });
  const records = [];
  for await (const record of memory.export({ tags: ["carry"] })) records.push(record);
  assert.equal(records.length, 1);
  const again = await memory.import(records, { on_conflict: "skip" });
  assert.equal(again.duplicate, 1);
  const seen = [];
  const answer = await memory.import(records, {}, { onProgress: (progress) => seen.push(progress.done) });
  assert.equal(answer.records, 1);
  const added = await memory.documentsAdd(
    { documents: [{ uri: "docs/tea.md", text: "# Tea\n\nGreen tea is brewed at 70 degrees." }] },
    { onProgress: () => {} },
  );
  assert.ok(added);
  await assert.rejects(memory.import(/** @type {any} */ ([{ v: 1 }])), InvalidError);
});

test("metrics are text", async () => {
  assert.match(await memory.metrics(), /mnemon_uptime_seconds/);
});

test("the feed sends each change once and ends with its reader", async () => {
  const feed = memory.changes({ after: 0, tags: ["feed"] });
  await memory.add({ content: "first", tags: ["feed"] });
  await memory.add({ content: "not for the feed" });
  await memory.add({ content: "second", tags: ["feed"] });
  const contents = [];
  for await (const change of feed) {
    contents.push(change.after?.content);
    if (contents.length === 2) break;
  }
  assert.deepEqual(contents, ["first", "second"]);
});

test("the feed continues after the server was restarted", async () => {
  let other = await startServer();
  const listen = other.url.replace("http://", "");
  const client = new Mnemon(other.url);
  const feed = client.changes({ after: 0 });
  await client.add({ content: "before" });
  assert.equal((await feed.next()).value?.after?.content, "before");
  const next = feed.next();
  await other.stop(true);
  other = await startServer({ listen, home: other.home });
  await client.add({ content: "after" });
  assert.equal((await next).value?.after?.content, "after");
  await feed.return?.();
  await other.stop();
});

test("a feed and a call end when their signal is aborted", async () => {
  const stop = new AbortController();
  const feed = memory.changes({}, { signal: stop.signal });
  const next = feed.next();
  stop.abort(new Error("enough"));
  await assert.rejects(next, /enough/);
  await assert.rejects(memory.stats({ signal: stop.signal }), /enough/);
});

test("a number that the store has not reached is refused", async () => {
  await assert.rejects(memory.changes({ after: 1_000_000 }).next(), InvalidError);
});

test("every operation of the contract has a method", async () => {
  const contract = JSON.parse(await readFile(new URL("../../../docs/openapi.json", import.meta.url), "utf8"));
  const routes = Object.entries(contract.paths).flatMap(([path, methods]) =>
    Object.keys(/** @type {object} */ (methods)).map((method) => `${method.toUpperCase()} ${path}`));
  const ours = Object.values(OPERATIONS).map((operation) => `${operation.method} ${operation.path}`);
  assert.deepEqual(ours.sort(), routes.sort());
  for (const name of Object.keys(OPERATIONS)) assert.equal(typeof (/** @type {any} */ (memory)[name]), "function");
});
