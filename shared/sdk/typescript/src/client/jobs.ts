import type * as Schemas from "../generated/schemas.js";
import type { CallOptions } from "./http.js";
import type { List } from "./page.js";
import { type Filter, type Query, Resource } from "./resource.js";

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

  /** Starts a run for each CloudEvent, at most 100. A repeated event has its run. */
  sendEvents(jobId: string, events: Schemas.CloudEvent[], options?: CallOptions): Promise<Schemas.EventReceipts> {
    const batch = { body: JSON.stringify(events), contentType: "application/cloudevents-batch+json", repeatable: true };
    return this.json("sendJobEvents", { path: { job_id: jobId }, ...batch }, options);
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

  /** The tenants to whom a pool is offered, and what their tasks of a day have used of it. */
  guests(poolId: string, query: Query<"poolGuests"> = {}, options?: CallOptions): Promise<Schemas.PoolGuests> {
    return this.json("poolGuests", { path: { pool_id: poolId }, query }, options);
  }

  /** The engines of the deployment and what they can do. */
  capabilities(options?: CallOptions): Promise<Schemas.Capabilities> {
    return this.json("capabilities", {}, options);
  }
}
