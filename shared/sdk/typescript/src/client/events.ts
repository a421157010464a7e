import { SortieError } from "../errors.js";
import type * as Schemas from "../generated/schemas.js";
import { type CallOptions, isServer } from "./http.js";
import { type List, list } from "./page.js";
import { type Filter, type Query, Resource } from "./resource.js";
import { parsed, resumed } from "./stream.js";

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
