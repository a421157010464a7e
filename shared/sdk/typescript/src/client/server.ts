import type * as Schemas from "../generated/schemas.js";
import type { CallOptions, OperationId } from "./http.js";
import { type Answer, Resource } from "./resource.js";

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
