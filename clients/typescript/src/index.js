// The client. Most of its methods are rows of the table in operations.js.

import { ConnectionError, MnemonError, ProtocolError, TimeoutError, problemError } from "./errors.js";
import { chunksOf, lines, parseEvents } from "./events.js";
import { OPERATIONS, PAGES } from "./operations.js";
import { send, sleep } from "./request.js";

export * from "./errors.js";

/**
 * @typedef {import("./request.js").Operation} Operation
 * @typedef {import("./request.js").Fields} Fields
 * @typedef {import("./index.d.ts").CallOptions} CallOptions
 */

const DEFAULT_URL = "http://127.0.0.1:8750";
const TIMEOUT_MS = 30_000;
/** The server sends a sign of life to listeners every 15 seconds. */
const SILENCE_MS = 60_000;

export class Mnemon {
  /** @type {import("./request.js").Settings} */
  #settings;

  /** @param {import("./index.d.ts").MnemonOptions | string} [options] */
  constructor(options = {}) {
    const given = typeof options === "string" ? { url: options } : options;
    this.#settings = {
      url: String(given.url ?? DEFAULT_URL).replace(/\/+$/, ""),
      key: given.key,
      fetch: given.fetch ?? ((...request) => globalThis.fetch(...request)),
      timeout: given.timeout ?? TIMEOUT_MS,
      retries: given.retries ?? 2,
    };
  }

  /**
   * @param {string} name
   * @param {unknown[]} values
   * @returns {Promise<unknown>}
   */
  call(name, values) {
    const operation = operationOf(name);
    const { path, fields, options } = parts(operation, values);
    const listens = operation.progress && options.onProgress !== undefined;
    if (listens) return this.#withProgress(operation, path, fields, options);
    return send(this.#settings, operation, path, fields, options, (response) =>
      operation.json ? json(response) : response.text(),
    );
  }

  /**
   * @param {Operation} operation
   * @param {string} path
   * @param {Fields} fields
   * @param {CallOptions} options
   * @param {{ body?: string, contentType?: string }} [other]
   */
  #withProgress(operation, path, fields, options, other = {}) {
    // Repeated only by the caller: the work goes on when a listener is cut.
    const listened = { ...options, retries: 0 };
    return send(
      this.#settings, operation, path, fields, listened,
      async (response, attempt) => {
        for await (const event of parseEvents(body(response))) {
          attempt.touch();
          if (event.data === undefined) continue;
          const data = parse(event.data);
          if (event.event === "progress") options.onProgress?.(data);
          else if (event.event === "error") throw problemError(data, data.status);
          else if (event.event === "result") return data;
        }
        throw new ProtocolError("the answer ended before its result", { code: "protocol" });
      },
      { ...other, accept: "text/event-stream" },
    );
  }

  /**
   * @param {string} name
   * @param {unknown[]} values
   */
  async *pages(name, values) {
    const page = PAGES[name];
    const operation = operationOf(name);
    if (page === undefined) throw new TypeError(`${name} has no pages`);
    const { path, fields, options } = parts(operation, values);
    let asked = fields;
    for (;;) {
      const answer = await send(this.#settings, operation, path, asked, options, json);
      yield* page.backwards ? answer[page.items].reverse() : answer[page.items];
      if (answer.next === undefined || answer.next === null) return;
      asked = { ...fields, [page.cursor]: answer.next };
    }
  }

  /**
   * @param {Fields & { after?: number }} [fields]
   * @param {CallOptions} [options]
   */
  async *changes(fields = {}, options = {}) {
    const operation = operationOf("changes");
    const idle = { ...options, timeout: options.timeout ?? SILENCE_MS };
    const retries = options.retries ?? Infinity;
    let last = fields.after === undefined ? undefined : String(fields.after);
    for (let failures = 0; ; ) {
      try {
        const { after: _, ...filters } = fields;
        const headers = last === undefined ? {} : { headers: { "Last-Event-ID": last } };
        const feed = await open(this.#settings, operation, filters, { ...idle, retries: 0 }, headers);
        for await (const event of feed) {
          failures = 0;
          if (event.id !== undefined && event.id !== "") last = event.id;
          if (event.event === "change" && event.data !== undefined) yield parse(event.data);
        }
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!transient(error) || failures >= retries) throw error;
      }
      failures += 1;
      await sleep(Math.min(5000, 100 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2), options.signal);
    }
  }

  /**
   * @param {Fields} [fields]
   * @param {CallOptions} [options]
   */
  async *export(fields = {}, options = {}) {
    const operation = operationOf("export");
    const { response, close } = await opened(this.#settings, operation, fields, options, {
      accept: "application/x-ndjson",
    });
    try {
      for await (const line of lines(body(response))) if (line !== "") yield parse(line);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof MnemonError) throw error;
      throw new ConnectionError("the export was cut off and is not whole", { code: "connection", cause: error });
    } finally {
      close();
    }
  }

  /**
   * @param {Iterable<unknown>} records
   * @param {Fields} [fields]
   * @param {CallOptions} [options]
   */
  import(records, fields = {}, options = {}) {
    const operation = operationOf("import");
    let text = "";
    for (const record of records) text += `${JSON.stringify(record)}\n`;
    const other = { body: text, contentType: "application/x-ndjson" };
    if (options.onProgress) return this.#withProgress(operation, operation.path, fields, options, other);
    return send(this.#settings, operation, operation.path, fields, options, json, other);
  }
}

for (const name of Object.keys(OPERATIONS)) {
  if (name in Mnemon.prototype) continue;
  define(name, function (...values) {
    return this.call(name, values);
  });
}
for (const name of Object.keys(PAGES)) {
  define(`${name}All`, function (...values) {
    return this.pages(name, values);
  });
}

/**
 * @param {string} name
 * @param {(this: Mnemon, ...values: unknown[]) => unknown} method
 */
function define(name, method) {
  Object.defineProperty(Mnemon.prototype, name, { value: method, configurable: true, writable: true });
}

/** @param {string} name */
function operationOf(name) {
  const operation = OPERATIONS[name];
  if (operation === undefined) throw new TypeError(`${name} is not an operation`);
  return operation;
}

/**
 * The arguments of a call: those in the path, the fields, the options.
 * @param {Operation} operation
 * @param {unknown[]} values
 */
function parts(operation, values) {
  const rest = [...values];
  let path = operation.path;
  for (const name of operation.parameters) {
    const value = rest.shift();
    if (typeof value !== "string" || value === "") throw new TypeError(`${name} must be a non-empty string`);
    path = path.replace(`{${name}}`, encodeURIComponent(value));
  }
  const fields = /** @type {Fields} */ ((operation.takesFields ? rest.shift() : undefined) ?? {});
  const options = /** @type {CallOptions} */ (rest.shift() ?? {});
  return { path, fields, options };
}

/**
 * The events of a feed. Its time limit is one of silence.
 * @param {import("./request.js").Settings} settings
 * @param {Operation} operation
 * @param {Fields} fields
 * @param {CallOptions} options
 * @param {{ headers?: { [name: string]: string } }} other
 */
async function open(settings, operation, fields, options, other) {
  const { response, close, touch } = await opened(settings, operation, fields, options, {
    ...other,
    accept: "text/event-stream",
  });
  return (async function* () {
    try {
      for await (const event of parseEvents(body(response))) {
        touch();
        yield event;
        touch();
      }
    } finally {
      close();
    }
  })();
}

/**
 * An answer whose body is read by the caller, who must call `close` at the end.
 * @param {import("./request.js").Settings} settings
 * @param {Operation} operation
 * @param {Fields} fields
 * @param {CallOptions} options
 * @param {{ accept?: string, headers?: { [name: string]: string } }} other
 */
async function opened(settings, operation, fields, options, other) {
  const abort = new AbortController();
  const stop = () => abort.abort(options.signal?.reason);
  if (options.signal?.aborted) stop();
  options.signal?.addEventListener("abort", stop, { once: true });
  const limit = options.timeout ?? settings.timeout;
  const silent = () => abort.abort(new TimeoutError(`nothing came for ${limit} ms`, { code: "timeout" }));
  let timer = setTimeout(silent, limit);
  const touch = () => {
    clearTimeout(timer);
    timer = setTimeout(silent, limit);
  };
  const close = () => {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", stop);
    abort.abort();
  };
  const bound = { ...settings, fetch: bindSignal(settings.fetch, abort.signal) };
  try {
    const response = await send(bound, operation, operation.path, fields, options, async (r) => r, other);
    touch();
    return { response, close, touch };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * A fetch whose answer can be aborted after its headers have come.
 * @param {typeof globalThis.fetch} fetch
 * @param {AbortSignal} signal
 * @returns {typeof globalThis.fetch}
 */
function bindSignal(fetch, signal) {
  return (target, init) => {
    const both = init?.signal ? AbortSignal.any([init.signal, signal]) : signal;
    return fetch(target, { ...init, signal: both });
  };
}

/** @param {unknown} error */
function transient(error) {
  if (!(error instanceof MnemonError)) return true;
  return ["connection", "timeout", "busy", "unavailable", "too-often"].includes(error.code);
}

/** @param {Response} response */
function body(response) {
  if (response.body === null) throw new ProtocolError("the answer has no body", { code: "protocol" });
  return chunksOf(response.body);
}

/**
 * @param {Response} response
 * @returns {Promise<any>}
 */
async function json(response) {
  const media = response.headers.get("Content-Type") ?? "none";
  const text = await response.text();
  if (!media.startsWith("application/json")) {
    throw new ProtocolError(`the answer has the content type ${media} instead of application/json`, {
      code: "protocol",
      status: response.status,
    });
  }
  return parse(text);
}

/**
 * @param {string} text
 * @returns {any}
 */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ProtocolError("the answer is not JSON", { code: "protocol", cause: error });
  }
}
