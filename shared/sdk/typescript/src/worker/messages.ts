import type { Category } from "./errors.js";
import type { Envelope, Upload } from "./envelope.js";

/** What the heartbeat thread is started with. */
export interface ThreadData {
  envelope: Envelope;
  workerId: string;
  handlesSigterm: boolean;
  sendsOutput: boolean;
  quiet: boolean;
  memory: SharedArrayBuffer;
}

export interface Output {
  outputPath: string;
  byteSize: number;
  digest: string;
  fileName?: string;
  rowCount?: number;
  materializationId?: string;
}

export interface Failure {
  category: Category | undefined;
  message: string;
  stackTrace: string;
  retryable: boolean | undefined;
}

export interface Result {
  failure: Failure | undefined;
  output?: Output;
  /** JSON of an object. */
  metrics?: string;
  /** Any JSON. */
  partialProgress?: string;
}

export type ToThread =
  | { kind: "phase"; name: string }
  | { kind: "output"; stream: "stdout" | "stderr"; data: Uint8Array }
  | { kind: "terminated" }
  | { kind: "target"; id: number; renew: boolean }
  | { kind: "complete"; result: Result };

export type ToMain =
  | { kind: "started" }
  | { kind: "stop" }
  | { kind: "target"; id: number; upload: Upload | undefined }
  /** The task is over. Nothing follows. */
  | { kind: "done"; code: number };
