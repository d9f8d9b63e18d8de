import type { Change, ChangesFields, ExportFields, Imported, MemoryRecord, Operations } from "./types.d.ts";

export type * from "./types.d.ts";

export interface MnemonOptions {
  /** Address of the server; http://127.0.0.1:8750 by default. */
  url?: string | URL;
  /** Key of the server, where one is needed. */
  key?: string;
  /** Milliseconds for one attempt; 30000 by default. */
  timeout?: number;
  /** How often a request that failed is repeated, where that is safe; 2 by default. */
  retries?: number;
  /** A fetch of your own, for tests or other environments. */
  fetch?: typeof fetch;
}

/** A part of the work is done. */
export interface Progress {
  done: number;
  total?: number;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds for one attempt; for streams, of silence. */
  timeout?: number;
  retries?: number;
  /** Name of this write: with the same one it is carried out once. Made by the client if it is not set. */
  idempotencyKey?: string;
  /** Called while a long operation runs (import, documentsAdd, upkeep, reembed, doctor, learnRun, learnImprove). */
  onProgress?: (progress: Progress) => void;
}

export interface Mnemon extends Operations {}

/** A memory on a server. It holds no connection: there is nothing to close. */
export class Mnemon {
  constructor(options?: MnemonOptions | string);

  /**
   * Every change, once and in order, for as long as you iterate. A feed that was cut continues
   * where it was. `after` is the last change that you know: 0 for all, without it the feed begins now.
   */
  changes(fields?: ChangesFields, options?: CallOptions): AsyncIterableIterator<Change>;

  /** The records, as they are read from the server. */
  export(fields?: ExportFields, options?: CallOptions): AsyncIterableIterator<MemoryRecord>;

  /** Import records that an export wrote. */
  import(
    records: Iterable<MemoryRecord>,
    fields?: { on_conflict?: "fail" | "skip" | "replace" },
    options?: CallOptions,
  ): Promise<Imported>;
}

/** Anything that the client throws, besides the reason of an AbortSignal. */
export class MnemonError extends Error {
  /** A word that stays the same, such as `not-found`. */
  readonly code: string;
  /** HTTP status, if there was an answer. */
  readonly status: number | undefined;
  /** The field that is wrong. */
  readonly field: string | undefined;
  /** What to do about it. */
  readonly hint: string | undefined;
  readonly causes: string[];
  /** Name of the request in the log of the server. */
  readonly requestId: string | undefined;
  /** Seconds after which to try again. */
  readonly retryAfter: number | undefined;
}

/** The request is wrong; `field` names the part. */
export class InvalidError extends MnemonError {}
/** The key is missing or not valid. */
export class UnauthorizedError extends MnemonError {}
/** The key, the host or the origin does not allow it. */
export class DeniedError extends MnemonError {}
/** It does not exist, or the key may not see it. */
export class NotFoundError extends MnemonError {}
/** It was changed meanwhile, exists already, or the idempotency key belongs to another request. */
export class ConflictError extends MnemonError {}
/** The request is too large. */
export class TooLargeError extends MnemonError {}
/** Too many requests, or a quota is used up. */
export class TooOftenError extends MnemonError {}
/** The server is busy. */
export class BusyError extends MnemonError {}
/** The server or its store cannot be reached at the moment. */
export class UnavailableError extends MnemonError {}
/** The store of this server cannot do it. */
export class UnsupportedError extends MnemonError {}
/** The disk of the server is full. */
export class FullError extends MnemonError {}
/** The store is damaged, or the server has a bug. */
export class InternalError extends MnemonError {}
/** No answer within the time limit. */
export class TimeoutError extends MnemonError {}
/** The server could not be reached, or the connection broke. */
export class ConnectionError extends MnemonError {}
/** The answer is not one of a Mnemon server. */
export class ProtocolError extends MnemonError {}
