import type * as Schemas from "../generated/schemas.js";
import { type CallOptions, pause } from "./http.js";
import type { List } from "./page.js";
import { type Filter, type Query, Resource } from "./resource.js";
import { isBreak, lines, parsed, resumed } from "./stream.js";

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

  /** Keeps a run until it is unpinned. */
  pin(runId: string, options?: CallOptions): Promise<Schemas.Task> {
    return this.json("pinRun", { path: { run_id: runId }, repeatable: true }, options);
  }

  /** Lets a pinned run expire. */
  unpin(runId: string, options?: CallOptions): Promise<Schemas.Task> {
    return this.json("unpinRun", { path: { run_id: runId }, repeatable: true }, options);
  }

  /** Sends a failed notification of a run again, or all. */
  redeliver(runId: string, request: Schemas.RedeliverActionRequest = {}, options?: CallOptions): Promise<Schemas.Task> {
    return this.json("redeliverActions", { path: { run_id: runId }, body: request, repeatable: true }, options);
  }

  /**
   * Creates a new run of one that has ended. `onlyFailed` runs those children again that have not
   * succeeded, `downstream` also the jobs that come after.
   */
  retry(runId: string, changes: Schemas.RetryRequest = {}, options?: CallOptions): Promise<Schemas.RetryAccepted> {
    return this.json("retryRun", { path: { run_id: runId }, body: changes }, options);
  }

  /** Explains why a run is in its state, and what comes next. */
  explain(runId: string, options?: CallOptions): Promise<Schemas.Explanation> {
    return this.json("explainRun", { path: { run_id: runId } }, options);
  }

  /** Counts the runs of a window by outcome, cause of failure and job. */
  activity(query: Query<"activity"> = {}, options?: CallOptions): Promise<Schemas.Activity> {
    return this.json("activity", { query }, options);
  }

  /** Shows what a run would do, without creating it. */
  plan(request: Schemas.PlanJobRequest | Schemas.RunDefinition, options?: CallOptions): Promise<Schemas.Plan> {
    return this.json("planRun", { body: request, repeatable: true }, options);
  }

  /** The states of a run, one for each of its events. */
  updates(runId: string, query: Query<"runUpdates"> = {}, options?: CallOptions): List<Schemas.RunUpdate> {
    return this.numbered("runUpdates", "updates", { path: { run_id: runId }, query }, options);
  }

  /** The children of a run, in the order of their items. */
  children(runId: string, filter: Filter<"listChildren"> = {}, options?: CallOptions): List<Schemas.RunChild> {
    return this.collect("listChildren", "children", { path: { run_id: runId }, query: filter }, options);
  }

  /** Cancels the runs of one page of a filter. Repeat it with `nextCursor` until that is absent. */
  cancelMany(request: Schemas.BulkCancelRequest, options?: CallOptions): Promise<Schemas.BulkAnswer> {
    return this.json("cancelRuns", { body: request, repeatable: true }, options);
  }

  /** Retries the runs of one page of a filter. Repeat it with `nextCursor` until that is absent. */
  retryMany(request: Schemas.BulkRequest, options?: CallOptions): Promise<Schemas.BulkAnswer> {
    return this.json("retryRuns", { body: request }, options);
  }

  /** Changes the labels of a run; `null` removes one. */
  label(runId: string, request: Schemas.LabelRequest, options?: CallOptions): Promise<Schemas.Task> {
    return this.json("labelRun", { path: { run_id: runId }, body: request, repeatable: true }, options);
  }

  /** Changes the labels of the runs of one page of a filter. Repeat it with `nextCursor` until that is absent. */
  labelMany(request: Schemas.BulkLabelRequest, options?: CallOptions): Promise<Schemas.BulkAnswer> {
    return this.json("labelRuns", { body: request, repeatable: true }, options);
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

  retry(taskId: string, changes: Schemas.RetryRequest = {}, options?: CallOptions): Promise<Schemas.RetryAccepted> {
    return this.json("retryTask", { path: { task_id: taskId }, body: changes }, options);
  }

  /** Changes the labels of a task; `null` removes one. */
  label(taskId: string, request: Schemas.LabelRequest, options?: CallOptions): Promise<Schemas.Task> {
    return this.json("labelTask", { path: { task_id: taskId }, body: request, repeatable: true }, options);
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
