// The client against servers that are gone, slow, or answer garbage.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import net from "node:net";
import { test } from "node:test";

import {
  BusyError, ConnectionError, Mnemon, ProtocolError, TimeoutError, TooOftenError,
} from "../src/index.js";
import { startServer } from "./server.js";

/**
 * @param {(request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse, count: number) => void} answer
 * @param {(client: Mnemon, requests: import("node:http").IncomingMessage[]) => Promise<void>} use
 */
async function withServer(answer, use) {
  /** @type {import("node:http").IncomingMessage[]} */
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(request);
    request.resume();
    answer(request, response, requests.length);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {net.AddressInfo} */ (server.address());
  try {
    await use(new Mnemon({ url: `http://127.0.0.1:${port}`, timeout: 10_000 }), requests);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/**
 * @param {import("node:http").ServerResponse} response
 * @param {number} status
 * @param {string} code
 * @param {{ [name: string]: string }} [headers]
 */
function problem(response, status, code, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/problem+json", ...headers });
  response.end(JSON.stringify({ title: "x", status, code, detail: "no" }));
}

const hits = { hits: [], recipe: "hybrid" };
/** @param {import("node:http").ServerResponse} response @param {unknown} value */
function ok(response, value) {
  response.writeHead(200, { "Content-Type": "application/json" });
  response.end(JSON.stringify(value));
}

test("a server that is gone", async () => {
  const gone = new Mnemon({ url: "http://127.0.0.1:1", retries: 1 });
  await assert.rejects(gone.search({ query: "tea" }), (error) => {
    assert.ok(error instanceof ConnectionError);
    assert.match(error.message, /127\.0\.0\.1:1/);
    return true;
  });
});

test("a server that does not answer", async () => {
  let attempts = 0;
  /** @type {typeof fetch} */
  const silent = (_, init) => new Promise((_, fail) => {
    attempts += 1;
    init?.signal?.addEventListener("abort", () => fail(init.signal?.reason));
  });
  const client = new Mnemon({ url: "http://127.0.0.1:1", fetch: silent });
  await assert.rejects(client.search({ query: "tea" }, { retries: 1, timeout: 20 }), TimeoutError);
  assert.equal(attempts, 2);
  await assert.rejects(client.update("an-id", { content: "x" }, { retries: 1, timeout: 20 }), TimeoutError);
  assert.equal(attempts, 3);
});

test("an answer that is not JSON, and one that is not a problem", async () => {
  await withServer((_, response) => response.writeHead(200, { "Content-Type": "text/html" }).end("<html>"),
    async (client) => {
      await assert.rejects(client.search({ query: "tea" }), ProtocolError);
    });
  await withServer((_, response) => response.writeHead(200, { "Content-Type": "application/json" }).end("{\"hits\": ["),
    async (client) => {
      await assert.rejects(client.search({ query: "tea" }), ProtocolError);
    });
  await withServer((_, response) => response.writeHead(418).end("teapot"), async (client) => {
    await assert.rejects(client.search({ query: "tea" }), (error) => error instanceof ProtocolError && error.status === 418);
  });
});

test("bytes that are not HTTP", async () => {
  const server = net.createServer((socket) => socket.end("garbage\r\n\r\n"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {net.AddressInfo} */ (server.address());
  const client = new Mnemon({ url: `http://127.0.0.1:${port}`, retries: 0 });
  await assert.rejects(client.search({ query: "tea" }), ConnectionError);
  server.close();
});

test("a read is repeated, a write without a key is not", async () => {
  const cut = (/** @type {any} */ request, /** @type {any} */ response, /** @type {number} */ count) =>
    count === 1 ? request.socket.destroy() : ok(response, hits);
  await withServer(cut, async (client, requests) => {
    await client.search({ query: "tea" });
    assert.equal(requests.length, 2);
  });
  await withServer(cut, async (client, requests) => {
    await assert.rejects(client.update("an-id", { content: "x" }), ConnectionError);
    assert.equal(requests.length, 1);
  });
});

test("a write that the server refused as busy is repeated", async () => {
  await withServer((_, response, count) => (count < 3 ? problem(response, 503, "busy") : ok(response, {})),
    async (client, requests) => {
      await client.update("an-id", { content: "x" });
      assert.equal(requests.length, 3);
    });
  await withServer((_, response) => problem(response, 503, "busy"), async (client, requests) => {
    await assert.rejects(client.update("an-id", { content: "x" }), BusyError);
    assert.equal(requests.length, 3);
  });
});

test("a long Retry-After is left to the caller", async () => {
  await withServer((_, response) => problem(response, 429, "too-often", { "Retry-After": "3600" }),
    async (client, requests) => {
      await assert.rejects(client.search({ query: "tea" }), (error) => error instanceof TooOftenError && error.retryAfter === 3600);
      assert.equal(requests.length, 1);
    });
});

test("a write whose answer was lost is not doubled", async () => {
  // A proxy that cuts the first answer of the real server on its way.
  const real = await startServer();
  const target = new URL(real.url);
  let cuts = 0;
  const proxy = net.createServer((near) => {
    const far = net.connect(Number(target.port), target.hostname);
    near.on("data", (data) => far.write(data));
    far.on("data", (data) => (cuts++ === 0 ? near.destroy() : near.write(data)));
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
    near.on("error", () => {});
    far.on("error", () => {});
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = /** @type {net.AddressInfo} */ (proxy.address());
  const client = new Mnemon(`http://127.0.0.1:${port}`);
  const receipt = await client.chatAppend("s1", { content: "said once" });
  assert.equal(receipt.items.length, 1);
  assert.ok(cuts >= 2);
  const direct = new Mnemon(real.url);
  assert.equal((await direct.chatTail("s1")).messages.length, 1);
  proxy.close();
  await real.stop();
});

test("an export that was cut is an error", async () => {
  await withServer((request, response) => {
    response.writeHead(200, { "Content-Type": "application/x-ndjson" });
    response.write('{"id":"a"}\n{"id"');
    setTimeout(() => request.socket.destroy(), 20);
  }, async (client) => {
    /** @type {string[]} */
    const seen = [];
    await assert.rejects(async () => {
      for await (const record of client.export()) seen.push(record.id);
    }, ConnectionError);
    assert.deepEqual(seen, ["a"]);
  });
});

test("a feed that falls silent is opened again after the last change", async () => {
  await withServer((request, response) => {
    const next = Number(request.headers["last-event-id"]) + 1;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(`: here\n\nid: ${next}\nevent: change\ndata: {"seq":${next}}\n\n`);
  }, async (client, requests) => {
    const feed = client.changes({ after: 0 }, { timeout: 200 });
    assert.equal((await feed.next()).value?.seq, 1);
    assert.equal((await feed.next()).value?.seq, 2);
    await feed.return?.();
    assert.deepEqual([...new Set(requests.map((r) => r.headers["last-event-id"]))].slice(0, 2), ["0", "1"]);
  });
});
