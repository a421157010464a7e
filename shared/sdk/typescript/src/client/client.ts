import { type ClientOptions, Http } from "./http.js";
import {
  Artifacts, Budgets, Events, Exports, Jobs, Models, OpenAI, Outputs, Pools, Runs, Server, Sessions, Tasks, Webhooks, Workers,
} from "./resources.js";

/**
 * A client of Sortie. It needs fetch and Web Crypto: Node.js 20, Deno, Bun, a browser, or a
 * worker of a cloud. It holds no connection and needs no close.
 */
export class Sortie {
  readonly runs: Runs;
  readonly tasks: Tasks;
  readonly jobs: Jobs;
  readonly exports: Exports;
  readonly outputs: Outputs;
  readonly events: Events;
  readonly webhooks: Webhooks;
  readonly pools: Pools;
  readonly models: Models;
  readonly artifacts: Artifacts;
  readonly sessions: Sessions;
  readonly budgets: Budgets;
  readonly openai: OpenAI;
  readonly server: Server;
  readonly workers: Workers;

  constructor(options: ClientOptions = {}) {
    const http = new Http(options);
    this.runs = new Runs(http);
    this.tasks = new Tasks(http);
    this.jobs = new Jobs(http);
    this.exports = new Exports(http);
    this.outputs = new Outputs(http);
    this.events = new Events(http);
    this.webhooks = new Webhooks(http);
    this.pools = new Pools(http);
    this.models = new Models(http);
    this.artifacts = new Artifacts(http);
    this.sessions = new Sessions(http);
    this.budgets = new Budgets(http);
    this.openai = new OpenAI(http);
    this.server = new Server(http);
    this.workers = new Workers(http);
  }
}
