package series

import (
	"context"
	"strconv"
)

// The names of the metrics of events.
const (
	Readers        = "sortie_stream_readers"
	ReadersEnded   = "sortie_stream_readers_ended_total"
	ReadersRefused = "sortie_stream_readers_refused_total"
	EventsSent     = "sortie_stream_events_sent_total"

	RelayEvents = "sortie_relay_events_total"
	RelayLag    = "sortie_relay_lag_seconds"

	Attempts       = "sortie_webhook_attempts_total"
	AttemptLatency = "sortie_webhook_attempt_seconds"
	Halts          = "sortie_webhook_halts_total"
	Webhooks       = "sortie_webhooks"
	Waiting        = "sortie_webhook_deliveries_waiting"
)

// Transport is the protocol by which a reader receives the events of a stream.
type Transport string

// The transports.
const (
	SSE       Transport = "sse"
	WebSocket Transport = "websocket"
)

// End is the reason why the stream of a reader has ended.
type End string

// The ends of streams.
const (
	EndLifetime End = "lifetime" // the stream reached its maximum lifetime
	EndSize     End = "size"     // the stream reached its maximum number of bytes
	EndShutdown End = "shutdown" // the server is shutting down
	EndSlow     End = "slow"     // the reader did not read fast enough
	EndGone     End = "gone"     // the reader has disconnected
	EndLost     End = "lost"     // the server cannot continue the stream
	EndRevoked  End = "revoked"  // the reader's token was revoked or has expired
)

// Target is a destination of the events of a relay.
type Target string

// The targets, in the order in which an event reaches them.
const (
	ToFeed     Target = "feed"
	ToBus      Target = "bus"
	ToWebhooks Target = "webhooks"
)

// Outcome is the result of an attempt to deliver an event to a webhook.
type Outcome string

// The outcomes without an HTTP status. The others are classes of statuses, such as "2xx".
const (
	OutcomeTimeout    Outcome = "timeout"    // no answer in time
	OutcomeRefused    Outcome = "refused"    // the address is not permitted; no request was sent
	OutcomeConnection Outcome = "connection" // no connection: DNS, TCP or TLS failed
)

// OutcomeOf returns the outcome for an HTTP status: "1xx" to "5xx".
func OutcomeOf(status int) Outcome {
	const class = 100
	return Outcome(strconv.Itoa(min(max(status/class, 1), 5)) + "xx")
}

// Halt is the reason why deliveries to a webhook are stopped or delayed.
type Halt string

// The halts.
const (
	HaltCircuit  Halt = "circuit"  // consecutive failures opened the circuit breaker
	HaltFailing  Halt = "failing"  // no success for a day: a warning
	HaltDisabled Halt = "disabled" // no success for five days
	HaltGone     Halt = "gone"     // disabled because the receiver answered 410
)

// Standing is the delivery state of a webhook.
type Standing string

// The standings.
const (
	StandingActive   Standing = "active"
	StandingCircuit  Standing = "circuit" // active, with an open circuit breaker
	StandingPaused   Standing = "paused"
	StandingDisabled Standing = "disabled"
)

// Standings lists the delivery states of webhooks, the values of the label state.
func Standings() []Standing {
	return []Standing{StandingActive, StandingCircuit, StandingPaused, StandingDisabled}
}

// LabelValues returns all values of a label of a metric. It returns nil if the values are not a
// fixed list.
func LabelValues(family, label string) []string {
	switch {
	case label == "transport":
		return texts(SSE, WebSocket)
	case family == ReadersEnded && label == "reason":
		return texts(EndLifetime, EndSize, EndShutdown, EndSlow, EndGone, EndLost, EndRevoked)
	case family == RelayLag && label == "target":
		return texts(ToFeed, ToBus, ToWebhooks)
	case family == Attempts && label == "outcome":
		return append([]string{"1xx", "2xx", "3xx", "4xx", "5xx"}, texts(OutcomeTimeout, OutcomeRefused, OutcomeConnection)...)
	case family == Halts && label == "reason":
		return texts(HaltCircuit, HaltFailing, HaltDisabled, HaltGone)
	case family == Webhooks && label == "state":
		return texts(Standings()...)
	case family == TasksCanceled && label == "reason":
		return texts(CancelledByClient, CancelledByDrain, CancelledByGone)
	case family == Backpressure && label == "policy":
		return texts(PolicyReject, PolicyBudget)
	case family == Drains && label == "reason":
		return []string{drainRequest}
	}
	return nil
}

func texts[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

// eventFamilies are the metrics of events.
func eventFamilies() []Family {
	transport := []string{"transport"}
	return []Family{
		{Name: Readers, Help: "Readers that are connected to streams of events.", Kind: Gauge, Labels: transport},
		{Name: ReadersEnded, Help: "Streams of readers that have ended, by the reason.", Kind: Counter, Labels: []string{"transport", "reason"}},
		{Name: ReadersRefused, Help: "Readers that found all places of their tenant or of the server taken.", Kind: Counter, Labels: transport},
		{Name: EventsSent, Help: "Events that were written to readers.", Kind: Counter, Labels: transport},
		{Name: RelayEvents, Help: "Events that relays have appended to the streams of their tenants.", Kind: Counter, Labels: nil},
		{Name: RelayLag, Help: "Age of the oldest event that a target has not got; 0 if it has all. Without a bus there is no series of it.", Kind: Gauge, Labels: []string{"target"}},
		{Name: Attempts, Help: "Attempts to deliver an event to a webhook, by the class of the HTTP status or the reason for a missing answer.", Kind: Counter, Labels: []string{"outcome"}},
		{Name: AttemptLatency, Help: "Time of an attempt from the request to the end of the answer.", Kind: Histogram, Labels: nil},
		{Name: Halts, Help: "Webhooks whose deliveries were held back or ended because the receiver fails.", Kind: Counter, Labels: []string{"reason"}},
		{Name: Webhooks, Help: "Webhooks, by whether they get events.", Kind: Gauge, Labels: []string{"state"}},
		{Name: Waiting, Help: "Deliveries of events that wait for their next attempt.", Kind: Gauge, Labels: nil},
	}
}

// Recorder records samples of counters and histograms. It is safe for concurrent use and does
// not block. ctx is the context of the measured operation.
type Recorder func(ctx context.Context, samples ...Sample)

// Discard is a Recorder that discards all samples.
func Discard(context.Context, ...Sample) {}

// Reader returns the present samples of gauges.
type Reader func(context.Context) ([]Sample, error)

// AllOf returns a Reader that concatenates the samples of readers. It stops at the first error.
func AllOf(readers ...Reader) Reader {
	return func(ctx context.Context) (all []Sample, err error) {
		for _, read := range readers {
			samples, err := read(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, samples...)
		}
		return all, nil
	}
}

// Count returns the sample that increments a counter by n.
func Count(name string, n int, labels ...string) Sample { return Sample{name, float64(n), labels} }
