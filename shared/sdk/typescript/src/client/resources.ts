import { SortieError } from "../errors.js";
import type { operations } from "../generated/openapi.js";
import type * as Schemas from "../generated/schemas.js";
import { type Call, type CallOptions, type Http, type OperationId, isServer, pause } from "./http.js";
import { type List, list } from "./page.js";
import { isBreak, lines, messages, parsed, resumed } from "./stream.js";
import type { SseMessage } from "./sse.js";

/** The query of an operation. */
export type Query<O extends keyof operations> = NonNullable<operations[O]["parameters"]["query"]>;
/** The query of a list, without the cursor. */
export type Filter<O extends keyof operations> = Omit<Query<O>, "cursor" | "after">;

/** What a request can store: bytes in any form. */
export type Content = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array>;

type Success<R> = R[keyof R & (200 | 201 | 202)];
type Json<R> = R extends { content: { "application/json": infer T } } ? T : never;
type Answer<O extends keyof operations> = [Json<Success<operations[O]["responses"]>>] extends [never] ? void : Json<Success<operations[O]["responses"]>>;
type Item<L> = L extends (infer T)[] ? T : never;

class Resource {
  /** @internal */
  protected readonly http: Http;

  /** @internal */
  constructor(http: Http) {
    this.http = http;
  }

  /** @internal */
  protected json<O extends OperationId>(operation: O, call: Call, options: CallOptions | undefined): Promise<Answer<O>> {
    return this.http.json<Answer<O>>(operation, call, options);
  }

  /** @internal */
  protected collect<O extends OperationId, M extends keyof Answer<O> & string>(
    operation: O, member: M, call: Call, options: CallOptions | undefined,
  ): List<Item<Answer<O>[M]>> {
    return list(async (cursor) => {
      const answer = await this.http.json<Record<string, unknown>>(operation, { ...call, query: { ...call.query, cursor } }, options);
      return { items: (answer[member] ?? []) as Item<Answer<O>[M]>[], next: (answer.nextCursor ?? answer.next_cursor) as string | undefined };
    });
  }

  /** @internal Lists of numbered items, which continue behind a number. */
  protected numbered<O extends OperationId, M extends keyof Answer<O> & string>(
    operation: O, member: M, call: Call, options: CallOptions | undefined,
  ): List<Item<Answer<O>[M]>> {
    return list(async (after) => {
      const query = { ...call.query, ...(after === undefined ? {} : { after }) };
      const answer = await this.http.json<Record<string, unknown>>(operation, { ...call, query }, options);
      return { items: (answer[member] ?? []) as Item<Answer<O>[M]>[], next: answer.nextAfter === undefined ? undefined : String(answer.nextAfter) };
    });
  }
}

const terminal: ReadonlySet<string> = new Set(["Completed", "Failed", "Cancelled", "Orphaned"]);

/** Whether a run in this state has ended. */
export function isTerminal(state: string): boolean {
  return terminal.has(state);
}

export class Runs extends Resource {
  /** Creates a run of a program, without a stored job. */
  create(definition: Schemas.RunDefinition, options?: CallOptions): Promise<Schemas.RunAccepted> {
    return this.json("createRun", { body: definition }, options);
  }

  get(runId: string, options?: CallOptions): Promise<Schemas.Task> {
    return this.json("getRun", { path: { run_id: runId } }, options);
  }

  list(filter: Filter<"listRuns"> = {}, options?: CallOptions): List<Schemas.Task> {
    return this.collect("listRuns", "tasks", { query: filter }, options);
  }

  /** Requests the end of a run. */
  cancel(runId: string, request: Schemas.CancelRequest = {}, options?: CallOptions): Promise<Schemas.CancelAnswer> {
    return this.json("cancelRun", { path: { run_id: runId }, body: request, repeatable: true }, options);
  }

  /** Creates a new run of one that has ended. */
  retry(runId: string, options?: CallOptions): Promise<Schemas.RetryAccepted> {
    return this.json("retryRun", { path: { run_id: runId } }, options);
  }

  /** Explains why a run is in its state, and what comes next. */
  explain(runId: string, options?: CallOptions): Promise<Schemas.Explanation> {
    return this.json("explainRun", { path: { run_id: runId } }, options);
  }

  /** Shows what a run would do, without creating it. */
  plan(request: Schemas.PlanJobRequest | Schemas.RunDefinition, options?: CallOptions): Promise<Schemas.Plan> {
    return this.json("planRun", { body: request, repeatable: true }, options);
  }

  /** The states of a run, one for each of its events. */
  updates(runId: string, query: Query<"runUpdates"> = {}, options?: CallOptions): List<Schemas.RunUpdate> {
    return this.numbered("runUpdates", "updates", { path: { run_id: runId }, query }, options);
  }

  /** Cancels the runs of one page of a filter. Repeat it with `nextCursor` until that is absent. */
  cancelMany(request: Schemas.BulkCancelRequest, options?: CallOptions): Promise<Schemas.BulkAnswer> {
    return this.json("cancelRuns", { body: request, repeatable: true }, options);
  }

  /** Retries the runs of one page of a filter. Repeat it with `nextCursor` until that is absent. */
  retryMany(request: Schemas.BulkRequest, options?: CallOptions): Promise<Schemas.BulkAnswer> {
    return this.json("retryRuns", { body: request }, options);
  }

  /**
   * Waits for the end of a run and returns it. The end may be a failure: see `state`.
   * `options.timeoutMs` bounds each request, `options.signal` the whole wait.
   */
  async wait(runId: string, options: CallOptions = {}): Promise<Schemas.Task> {
    let run = await this.get(runId, options);
    const path = { task_id: run.taskId };
    const wait = Math.min(20, Math.floor((options.timeoutMs ?? 40_000) / 2000));
    while (!isTerminal(run.state)) {
      // The server answers when something changes.
      const begun = Date.now();
      const status = await this.json("status", { path, query: { wait }, timeoutMs: 40_000 }, options);
      if (isTerminal(status.state)) run = await this.get(runId, options);
      else if (Date.now() - begun < 250) await pause(250, options.signal);
    }
    return run;
  }
}

export class Tasks extends Resource {
  /** Creates an inference task. */
  create(request: Schemas.TaskRequest, options?: CallOptions): Promise<Schemas.TaskAccepted> {
    return this.json("createTask", { body: request }, options);
  }

  get(taskId: string, options?: CallOptions): Promise<Schemas.Task> {
    return this.json("task", { path: { task_id: taskId } }, options);
  }

  list(filter: Filter<"listTasks"> = {}, options?: CallOptions): List<Schemas.Task> {
    return this.collect("listTasks", "tasks", { query: filter }, options);
  }

  cancel(taskId: string, request: Schemas.CancelRequest = {}, options?: CallOptions): Promise<Schemas.CancelAnswer> {
    return this.json("cancelTask", { path: { task_id: taskId }, body: request, repeatable: true }, options);
  }

  retry(taskId: string, options?: CallOptions): Promise<Schemas.RetryAccepted> {
    return this.json("retryTask", { path: { task_id: taskId } }, options);
  }

  /** What happened to a task, numbered without gaps. */
  events(taskId: string, query: Query<"taskEvents"> = {}, options?: CallOptions): List<Schemas.TaskEvent> {
    return this.numbered("taskEvents", "events", { path: { task_id: taskId }, query }, options);
  }

  /** The output of the worker as text. */
  logs(taskId: string, query: Omit<Query<"taskLogs">, "follow"> = {}, options?: CallOptions): Promise<string> {
    return this.http.text("taskLogs", { path: { task_id: taskId }, query, accept: "text/plain, application/octet-stream" }, options);
  }

  /** Follows the output of all attempts until the run ends, and resumes after a break. */
  async *followLogs(taskId: string, query: Omit<Query<"taskLogs">, "follow"> = {}, options: CallOptions = {}): AsyncGenerator<Schemas.LogLine> {
    let { attempt, offset } = query;
    for (let failures = 0; ; failures++) {
      try {
        const response = await this.http.raw("taskLogs", {
          path: { task_id: taskId }, query: { ...query, attempt, offset, follow: true }, accept: "application/x-ndjson",
        }, options);
        // An idle program writes nothing for hours. A new connection then costs little.
        for await (const text of lines(response, 120_000)) {
          failures = 0;
          if (text.trim() === "") continue;
          const line = parsed<Schemas.LogLine>(text);
          attempt = line.attempt ?? attempt;
          offset = line.next;
          yield line;
          if (line.ended) return;
        }
      } catch (error) {
        if (options.signal?.aborted) throw options.signal.reason;
        if (!isBreak(error)) throw error;
      }
      await pause(Math.min(30_000, 500 * 2 ** failures) * (0.5 + Math.random() / 2), options.signal);
    }
  }

  /** Streams the answer of an inference task. It resumes after a break and ends with the task. */
  async *stream(taskId: string, query: { after?: string } = {}, options: CallOptions = {}): AsyncGenerator<TaskStreamEvent> {
    const stream = resumed({
      cursor: query.after,
      open: (cursor) => this.http.raw("streamTask", {
        path: { task_id: taskId }, accept: "text/event-stream", ...(cursor ? { headers: { "Last-Event-ID": cursor } } : {}),
      }, options),
      isLast: ({ event }) => event === "end" || event === "error",
      moved: () => undefined,
    }, options);
    for await (const { id, event, data } of stream) yield { id, event, data: parsed<Record<string, unknown>>(data) };
  }
}

/** An event of the stream of an inference task. */
export interface TaskStreamEvent {
  id: string;
  /** started, token, reasoning, result, metrics, end, error, or an event of a newer server. */
  event: string;
  data: Record<string, unknown>;
}

export class Exports extends Resource {
  create(format: Schemas.ExportFormat, request: Schemas.ExportRequest, options?: CallOptions): Promise<Schemas.ExportAccepted> {
    return this.json("export", { path: { format }, body: request }, options);
  }

  /** The status in the format of the export contract. `wait` waits for a change, at most 20 seconds. */
  status(taskId: string, query: Query<"status"> = {}, options?: CallOptions): Promise<Schemas.Status> {
    return this.json("status", { path: { task_id: taskId }, query, timeoutMs: 40_000 }, options);
  }
}

export class Outputs extends Resource {
  /** Downloads the output of a task. The body of the response is not read yet. */
  download(taskId: string, options?: CallOptions): Promise<Response> {
    return this.http.raw("download", { path: { task_id: taskId }, accept: "*/*", follow: true }, options);
  }

  /** Returns the headers of the download: its size, type, name and entity tag. */
  async describe(taskId: string, options?: CallOptions): Promise<Headers> {
    return (await this.http.raw("describeOutput", { path: { task_id: taskId }, accept: "*/*", follow: true }, options)).headers;
  }

  delete(taskId: string, options?: CallOptions): Promise<void> {
    return this.json("deleteOutput", { path: { task_id: taskId } }, options);
  }
}

export class Jobs extends Resource {
  list(filter: Filter<"listJobs"> = {}, options?: CallOptions): List<Schemas.JobSummary> {
    return this.collect("listJobs", "jobs", { query: filter }, options);
  }

  get(jobId: string, options?: CallOptions): Promise<Schemas.Job> {
    return this.json("job", { path: { job_id: jobId } }, options);
  }

  /** Creates or replaces a job. A text is YAML. */
  put(jobId: string, definition: Schemas.JobDefinition | string, query: Query<"putJob"> = {}, options?: CallOptions): Promise<Schemas.Job> {
    const yaml = typeof definition === "string" ? { contentType: "application/yaml" } : {};
    return this.json("putJob", { path: { job_id: jobId }, query, body: definition, ...yaml }, options);
  }

  /** Changes members of a job (RFC 7396). */
  patch(jobId: string, patch: object, options?: CallOptions): Promise<Schemas.Job> {
    return this.json("patchJob", { path: { job_id: jobId }, body: patch }, options);
  }

  delete(jobId: string, options?: CallOptions): Promise<void> {
    return this.json("deleteJob", { path: { job_id: jobId } }, options);
  }

  version(jobId: string, version: number, options?: CallOptions): Promise<Schemas.JobVersion> {
    return this.json("jobVersion", { path: { job_id: jobId, version } }, options);
  }

  pause(jobId: string, options?: CallOptions): Promise<Schemas.Job> {
    return this.json("pauseJob", { path: { job_id: jobId } }, options);
  }

  resume(jobId: string, options?: CallOptions): Promise<Schemas.Job> {
    return this.json("resumeJob", { path: { job_id: jobId } }, options);
  }

  clear(jobId: string, options?: CallOptions): Promise<Schemas.Job> {
    return this.json("clearJob", { path: { job_id: jobId } }, options);
  }

  explain(jobId: string, options?: CallOptions): Promise<Schemas.JobExplanation> {
    return this.json("explainJob", { path: { job_id: jobId } }, options);
  }

  run(jobId: string, request: Schemas.JobRunRequest = {}, options?: CallOptions): Promise<Schemas.RunAccepted> {
    return this.json("runJob", { path: { job_id: jobId }, body: request }, options);
  }

  runs(jobId: string, filter: Filter<"listJobRuns"> = {}, options?: CallOptions): List<Schemas.Task> {
    return this.collect("listJobRuns", "runs", { path: { job_id: jobId }, query: filter }, options);
  }

  /** The JSON Schema of job files. */
  schema(options?: CallOptions): Promise<Record<string, unknown>> {
    return this.http.json("jobSchema", { accept: "application/schema+json, application/json" }, options);
  }
}

export class Pools extends Resource {
  list(options?: CallOptions): List<Schemas.Pool> {
    return this.collect("listPools", "pools", {}, options);
  }

  get(poolId: string, options?: CallOptions): Promise<Schemas.Pool> {
    return this.json("pool", { path: { pool_id: poolId } }, options);
  }

  put(poolId: string, definition: Schemas.PoolDefinition, options?: CallOptions): Promise<Schemas.Pool> {
    return this.json("putPool", { path: { pool_id: poolId }, body: definition }, options);
  }

  delete(poolId: string, options?: CallOptions): Promise<void> {
    return this.json("deletePool", { path: { pool_id: poolId } }, options);
  }

  drain(poolId: string, request: Schemas.PoolDrain = {}, options?: CallOptions): Promise<Schemas.Pool> {
    return this.json("drainPool", { path: { pool_id: poolId }, body: request }, options);
  }

  resume(poolId: string, options?: CallOptions): Promise<Schemas.Pool> {
    return this.json("resumePool", { path: { pool_id: poolId } }, options);
  }

  reload(poolId: string, request: Schemas.PoolReload, options?: CallOptions): Promise<Schemas.Pool> {
    return this.json("reloadPool", { path: { pool_id: poolId }, body: request }, options);
  }

  health(poolId: string, options?: CallOptions): Promise<Schemas.PoolHealth> {
    return this.json("poolHealth", { path: { pool_id: poolId } }, options);
  }

  /** The engines of the deployment and what they can do. */
  capabilities(options?: CallOptions): Promise<Schemas.Capabilities> {
    return this.json("capabilities", {}, options);
  }
}

/** A stream of events. It connects again by itself. */
export interface EventStream extends AsyncIterable<Schemas.Event> {
  /** The cursor behind the newest event. Store it with what was done with the event. */
  readonly cursor: string | undefined;
}

export interface EventStreamParams extends Schemas.EventFilter {
  /** Where the stream begins: a cursor, `earliest` or `latest`. Default: `latest`. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
  /**
   * Called if the stream no longer has what follows the cursor; the stream then continues with its
   * oldest event. Without it the stream ends with an ApiError with the code CURSOR_EXPIRED.
   */
  onGap?: (gap: Schemas.StreamGap) => void;
}

export class Events extends Resource {
  /** The stored events, oldest first. Its pages continue until the end of the stream. */
  list(query: Omit<Query<"listEvents">, "types"> & { types?: string[] } = {}, options?: CallOptions): List<Schemas.Event> {
    return list<Schemas.Event>(async (cursor) => {
      const after = cursor ?? query.after;
      const page = await this.json("listEvents", { query: { ...query, after } }, options);
      return { items: page.events, next: page.next === after ? undefined : page.next };
    });
  }

  /** One page of events as lines of JSON: plain, or signed (DSSE) for `sortie events verify`. */
  async lines(query: Query<"listEvents"> & { signed?: boolean } = {}, options?: CallOptions): Promise<{ lines: string; next: string | undefined }> {
    const { signed, ...rest } = query;
    const accept = signed ? "application/vnd.dsse+x-ndjson" : "application/x-ndjson";
    const response = await this.http.raw("listEvents", { query: rest, accept }, options);
    return { lines: await response.text(), next: response.headers.get("X-Next-Cursor") ?? undefined };
  }

  /** Follows the events. After a break it continues behind the last one. */
  stream(params: EventStreamParams = {}, options: CallOptions = {}): EventStream {
    const { after, signal, onGap, ...filter } = params;
    const call: CallOptions = { ...options, signal: signal ?? options.signal };
    let cursor = after;
    const open = (from: string | undefined): Promise<Response> => this.http.raw("streamEvents", {
      query: { ...filter, after: from, gap: onGap ? undefined : "fail" }, accept: "text/event-stream",
    }, call);
    async function* events(): AsyncGenerator<Schemas.Event> {
      for await (const { event, data } of resumed({ cursor, open, moved: (to) => void (cursor = to) }, call)) {
        if (event === "stream.gap") onGap?.(parsed<Schemas.StreamGap>(data));
        else yield parsed<Schemas.Event>(data);
      }
    }
    return {
      get cursor() {
        return cursor;
      },
      [Symbol.asyncIterator]: events,
    };
  }

  /** Creates a ticket with which a browser opens the streams of one filter. */
  ticket(filter: Schemas.EventFilter = {}, options?: CallOptions): Promise<Schemas.EventTicket> {
    return this.json("createEventTicket", { body: filter }, options);
  }

  /** Sends a range of the stream again, to a webhook or to the bus. */
  replay(request: Schemas.ReplayRequest, options?: CallOptions): Promise<Schemas.Replay> {
    return this.json("replayEvents", { body: request }, options);
  }

  /**
   * Opens a WebSocket of events. A ticket authorizes it, because a browser can send no token. Its
   * messages are of the schema StreamMessage. `url` is that of a deployment whose sockets have their own address.
   */
  async connect(
    params: Schemas.EventFilter & { after?: string; gap?: "fail"; url?: string; WebSocket?: new (url: string) => WebSocket } = {}, options?: CallOptions,
  ): Promise<WebSocket> {
    const { after, gap, url, WebSocket: given, ...filter } = params;
    const Socket = given ?? globalThis.WebSocket;
    if (url !== undefined && !isServer(url.replace(/^ws/i, "http"))) throw new SortieError("url: want a ws or wss URL without a user, a query and a fragment");
    if (Socket === undefined) throw new SortieError("this program has no WebSocket: pass one");
    const ticket = (await this.http.bearer()) ? (await this.ticket(filter, options)).ticket : undefined;
    const address = this.http.address("connectEvents", { query: { ...filter, after, gap, ticket } });
    const target = url === undefined ? address : url.replace(/\/+$/, "") + new URL(address).search;
    return new Socket(target.replace(/^http/i, "ws"));
  }
}

export class Webhooks extends Resource {
  /** Creates a webhook. The answer has the secret, once. */
  create(settings: Schemas.WebhookSettings, options?: CallOptions): Promise<Schemas.WebhookDetail> {
    return this.json("createWebhook", { body: settings }, options);
  }

  list(filter: Filter<"listWebhooks"> = {}, options?: CallOptions): List<Schemas.Webhook> {
    return this.collect("listWebhooks", "webhooks", { query: filter }, options);
  }

  get(webhookId: string, options?: CallOptions): Promise<Schemas.WebhookDetail> {
    return this.json("webhook", { path: { webhook_id: webhookId } }, options);
  }

  /** Changes members of a webhook (RFC 7396). */
  patch(webhookId: string, patch: object, options?: CallOptions): Promise<Schemas.WebhookDetail> {
    return this.json("patchWebhook", { path: { webhook_id: webhookId }, body: patch }, options);
  }

  delete(webhookId: string, options?: CallOptions): Promise<void> {
    return this.json("deleteWebhook", { path: { webhook_id: webhookId } }, options);
  }

  /** Adds a secret. The answer has it, once. */
  rotate(webhookId: string, request: Schemas.RotateWebhookRequest = {}, options?: CallOptions): Promise<Schemas.WebhookDetail> {
    return this.json("rotateWebhook", { path: { webhook_id: webhookId }, body: request }, options);
  }

  /** Sends one webhook.test now. */
  test(webhookId: string, options?: CallOptions): Promise<Schemas.WebhookAttempt> {
    return this.json("testWebhook", { path: { webhook_id: webhookId } }, options);
  }

  deliveries(webhookId: string, filter: Filter<"webhookDeliveries"> = {}, options?: CallOptions): List<Schemas.WebhookDelivery> {
    return this.collect("webhookDeliveries", "deliveries", { path: { webhook_id: webhookId }, query: filter }, options);
  }

  redeliver(webhookId: string, request: Schemas.RedeliverRequest, options?: CallOptions): Promise<Schemas.Redelivery> {
    return this.json("redeliverWebhook", { path: { webhook_id: webhookId }, body: request }, options);
  }
}

export class Artifacts extends Resource {
  /** Stores a JSON document. */
  create(request: Schemas.ArtifactRequest, options?: CallOptions): Promise<Schemas.ArtifactCreated> {
    return this.json("createArtifact", { body: request, repeatable: true }, options);
  }

  /** Stores bytes under their SHA-256. */
  upload(
    content: Content, description: { kind?: string; tags?: string[]; parent?: string; metadata?: object; contentType?: string } = {}, options?: CallOptions,
  ): Promise<Schemas.ArtifactCreated> {
    const { contentType = "application/octet-stream", tags, metadata, ...rest } = description;
    const query = { ...rest, tags: tags?.join(" "), metadata: metadata && JSON.stringify(metadata) };
    return this.json("createArtifact", { query, body: content, contentType, repeatable: true }, options);
  }

  list(filter: Filter<"listArtifacts"> = {}, options?: CallOptions): List<Schemas.ArtifactSummary> {
    return this.collect("listArtifacts", "artifacts", { query: filter }, options);
  }

  /** Returns the description of an artifact. */
  describe(artifactId: string, options?: CallOptions): Promise<Schemas.ArtifactSummary> {
    return this.http.json("artifact", { path: { artifact_id: artifactId }, query: { content: false } }, options);
  }

  /** Returns a JSON artifact with its content. */
  get(artifactId: string, options?: CallOptions): Promise<Schemas.Artifact> {
    return this.http.json("artifact", { path: { artifact_id: artifactId } }, options);
  }

  /** Downloads an artifact that is not JSON. The body of the response is not read yet. */
  download(artifactId: string, options?: CallOptions): Promise<Response> {
    return this.http.raw("artifact", { path: { artifact_id: artifactId }, accept: "*/*" }, options);
  }
}

export class Models extends Resource {
  create(request: Schemas.ModelRequest, options?: CallOptions): Promise<Schemas.Model> {
    return this.json("createModel", { body: request }, options);
  }

  list(filter: Filter<"listModels"> = {}, options?: CallOptions): List<Schemas.Model> {
    return this.collect("listModels", "models", { query: filter }, options);
  }

  get(modelId: string, options?: CallOptions): Promise<Schemas.Model> {
    return this.json("model", { path: { model_id: modelId } }, options);
  }

  /** Changes members of a model (RFC 7396). */
  patch(modelId: string, patch: object, options?: CallOptions): Promise<Schemas.Model> {
    return this.json("patchModel", { path: { model_id: modelId }, body: patch }, options);
  }

  delete(modelId: string, options?: CallOptions): Promise<void> {
    return this.json("deleteModel", { path: { model_id: modelId } }, options);
  }

  verify(modelId: string, options?: CallOptions): Promise<Schemas.ModelVerification> {
    return this.json("verifyModel", { path: { model_id: modelId } }, options);
  }

  setState(modelId: string, request: Schemas.ModelStateRequest, options?: CallOptions): Promise<Schemas.Model> {
    return this.json("setModelState", { path: { model_id: modelId }, body: request }, options);
  }
}

export class Sessions extends Resource {
  get(sessionId: string, options?: CallOptions): Promise<Schemas.Session> {
    return this.json("session", { path: { session_id: sessionId } }, options);
  }

  delete(sessionId: string, options?: CallOptions): Promise<void> {
    return this.json("deleteSession", { path: { session_id: sessionId } }, options);
  }
}

export class Budgets extends Resource {
  /** `scope` is `tenant`, `project:ID` or `session:ID`. */
  get(scope: string, options?: CallOptions): Promise<Schemas.Budget> {
    return this.json("budget", { path: { scope } }, options);
  }

  put(scope: string, limit: Schemas.BudgetLimit, options?: CallOptions): Promise<Schemas.Budget> {
    return this.json("putBudget", { path: { scope }, body: limit }, options);
  }
}

const generationMs = 15 * 60_000;

/** The routes that OpenAI's clients use. A stream of them is not resumed, but that of `streamStoredResponse`. */
export class OpenAI extends Resource {
  chat(request: Schemas.ChatRequest, options?: CallOptions): Promise<Schemas.ChatCompletion> {
    return this.json("createChatCompletion", { body: request, timeoutMs: generationMs }, options);
  }

  streamChat(request: Schemas.ChatRequest, options?: CallOptions): AsyncIterable<Record<string, unknown>> {
    return this.parts("createChatCompletion", request, options);
  }

  complete(request: Schemas.CompletionRequest, options?: CallOptions): Promise<Schemas.TextCompletion> {
    return this.json("createCompletion", { body: request, timeoutMs: generationMs }, options);
  }

  streamCompletion(request: Schemas.CompletionRequest, options?: CallOptions): AsyncIterable<Record<string, unknown>> {
    return this.parts("createCompletion", request, options);
  }

  embed(request: Schemas.EmbeddingRequest, options?: CallOptions): Promise<Schemas.EmbeddingList> {
    return this.json("createEmbedding", { body: request, timeoutMs: generationMs }, options);
  }

  respond(request: Schemas.ResponseRequest, options?: CallOptions): Promise<Schemas.Response> {
    return this.json("createResponse", { body: request, timeoutMs: generationMs }, options);
  }

  streamResponse(request: Schemas.ResponseRequest, options?: CallOptions): AsyncIterable<Record<string, unknown>> {
    return this.parts("createResponse", request, options);
  }

  response(responseId: string, options?: CallOptions): Promise<Schemas.Response> {
    return this.json("getResponse", { path: { response_id: responseId } }, options);
  }

  /** Streams a stored response behind a sequence number. */
  async *streamStoredResponse(responseId: string, after?: number, options: CallOptions = {}): AsyncGenerator<Record<string, unknown>> {
    const response = await this.http.raw("getResponse", {
      path: { response_id: responseId }, query: { stream: true, starting_after: after }, accept: "text/event-stream",
    }, options);
    yield* decoded(messages(response, options.signal));
  }

  deleteResponse(responseId: string, options?: CallOptions): Promise<Schemas.DeletedResponse> {
    return this.json("deleteResponse", { path: { response_id: responseId } }, options);
  }

  cancelResponse(responseId: string, options?: CallOptions): Promise<Schemas.Response> {
    return this.json("cancelResponse", { path: { response_id: responseId }, repeatable: true }, options);
  }

  models(options?: CallOptions): Promise<Schemas.ServedModelList> {
    return this.json("listServedModels", {}, options);
  }

  model(model: string, options?: CallOptions): Promise<Schemas.ServedModel> {
    return this.json("getServedModel", { path: { model } }, options);
  }

  private async *parts(operation: OperationId, request: object, options: CallOptions = {}): AsyncGenerator<Record<string, unknown>> {
    const call = { body: { ...request, stream: true }, accept: "text/event-stream", timeoutMs: generationMs };
    yield* decoded(messages(await this.http.raw(operation, call, options), options.signal));
  }
}

async function* decoded(stream: AsyncIterable<SseMessage>): AsyncGenerator<Record<string, unknown>> {
  for await (const { data } of stream) {
    if (data === "[DONE]") return;
    yield parsed<Record<string, unknown>>(data);
  }
}

/** The server itself. */
export class Server extends Resource {
  health(options?: CallOptions): Promise<Schemas.Health> {
    return this.json("health", {}, options);
  }

  ready(options?: CallOptions): Promise<Schemas.Health> {
    return this.json("ready", {}, options);
  }

  /** The keys that sign worker tokens and events. */
  keys(options?: CallOptions): Promise<Schemas.KeySet> {
    return this.json("keys", {}, options);
  }

  openapi(options?: CallOptions): Promise<Record<string, unknown>> {
    return this.json("openapi", {}, options);
  }

  /** The metrics in the format of Prometheus. */
  metrics(options?: CallOptions): Promise<string> {
    return this.http.text("metrics", { accept: "text/plain" }, options);
  }

  /** Reports what a cluster shows of its machines. */
  reportMachines(report: Schemas.MachineReport, options?: CallOptions): Promise<Schemas.MachineReportAnswer> {
    return this.json("reportMachines", { body: report, repeatable: true }, options);
  }
}

/** The calls of a worker, for tests and for runtimes other than Node.js. `@sortie/sdk/worker` makes them by itself. */
export class Workers extends Resource {
  started(taskId: string, token: string, body: Schemas.TaskStarted, options?: CallOptions): Promise<Schemas.Acknowledged> {
    return this.report("started", taskId, token, body, options);
  }

  heartbeat(taskId: string, token: string, body: Schemas.TaskHeartbeat, options?: CallOptions): Promise<Schemas.HeartbeatAnswer> {
    return this.report("heartbeat", taskId, token, body, options);
  }

  sendLog(taskId: string, token: string, body: Schemas.TaskLog, options?: CallOptions): Promise<Schemas.LogAnswer> {
    return this.report("sendLog", taskId, token, body, options);
  }

  completed(taskId: string, token: string, body: Schemas.TaskCompleted, options?: CallOptions): Promise<Schemas.CompletedAnswer> {
    return this.report("completed", taskId, token, body, options);
  }

  /** Reports the result of a worker of the export contract. */
  callback(taskId: string, token: string, body: Schemas.Callback, options?: CallOptions): Promise<Schemas.CallbackReceived> {
    return this.report("callback", taskId, token, body, options);
  }

  private report<O extends OperationId>(operation: O, taskId: string, token: string, body: object, options: CallOptions | undefined): Promise<Answer<O>> {
    return this.json(operation, { path: { task_id: taskId }, token, body, repeatable: true }, options);
  }
}
