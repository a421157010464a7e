/** Authorizes one PUT of an object. The URL is a secret. */
export interface Upload {
  url: string;
  headers?: Record<string, string>;
  key: string;
  expiresAt: string;
}

/** What Sortie gives a worker in TASK_ENVELOPE. It contains secrets. */
export interface Envelope {
  taskId: string;
  runId: string;
  assetId?: string;
  taskKey?: string;
  tenantId?: string;
  workspaceId?: string;
  correlationId?: string;
  traceparent?: string;
  attempt: number;
  resources?: { cpuMillicores?: number; memoryBytes?: number; timeoutMs?: number };
  enqueuedAt?: string;
  deadline?: string;
  callbackBaseUrl: string;
  taskToken: string;
  tokenExpiresAt?: string;
  heartbeatIntervalMs: number;
  heartbeatTimeoutMs: number;
  cancelGracePeriodMs: number;
  output?: Upload;
  log?: Upload;
  program?: {
    input?: { url: string; size: number; expiresAt: string };
    output?: { path: string; fileName: string; contentType?: string };
  };
}

const maxEnvelope = 1 << 20;
const maxIntervalMs = 86_400_000;
const taskIdForm = /^[A-Za-z0-9][A-Za-z0-9_.~:-]{0,255}$/;
const tokenForm = /^[!-~]+$/;

export function isHttpUrl(text: unknown): text is string {
  if (typeof text !== "string") return false;
  try {
    const url = new URL(text);
    return (url.protocol === "http:" || url.protocol === "https:") && url.hostname !== "";
  } catch {
    return false;
  }
}

export function isToken(text: unknown): text is string {
  return typeof text === "string" && tokenForm.test(text);
}

/** Reads an envelope. The error names every problem and contains no value. */
export function parseEnvelope(text: string): Envelope {
  if (text.length > maxEnvelope) throw new Error("invalid TASK_ENVELOPE: larger than 1 MiB");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("invalid TASK_ENVELOPE: not JSON"); // the message of JSON.parse quotes the text
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("invalid TASK_ENVELOPE: want an object");
  const envelope = { ...(value as Envelope) };
  envelope.heartbeatIntervalMs ||= 30_000;
  envelope.heartbeatTimeoutMs ||= 90_000;
  envelope.cancelGracePeriodMs ||= 30_000;
  const problems: string[] = [];
  const check = (valid: boolean, problem: string): void => {
    if (!valid) problems.push(problem);
  };
  check(typeof envelope.taskId === "string" && taskIdForm.test(envelope.taskId), "missing or malformed taskId");
  check(Number.isInteger(envelope.attempt) && envelope.attempt >= 1, "attempt: want a number from 1");
  check(isHttpUrl(envelope.callbackBaseUrl), "callbackBaseUrl: want an http or https URL");
  check(isToken(envelope.taskToken), "missing or malformed taskToken");
  for (const name of ["heartbeatIntervalMs", "heartbeatTimeoutMs", "cancelGracePeriodMs"] as const) {
    const ms: unknown = envelope[name];
    check(typeof ms === "number" && ms > 0 && ms <= maxIntervalMs, `${name}: want 1 to 86400000 milliseconds`);
  }
  check(!envelope.output || isHttpUrl(envelope.output.url), "output.url: want an http or https URL");
  check(!envelope.log || isHttpUrl(envelope.log.url), "log.url: want an http or https URL");
  check(!envelope.program?.input || isHttpUrl(envelope.program.input.url), "program.input.url: want an http or https URL");
  check(!envelope.deadline || !Number.isNaN(Date.parse(envelope.deadline)), "deadline: want an RFC 3339 time");
  if (problems.length > 0) throw new Error(`invalid TASK_ENVELOPE: ${problems.join("; ")}`);
  return envelope;
}
