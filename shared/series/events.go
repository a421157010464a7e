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

// Transport is how a reader gets the events of a stream.
type Transport string

// The transports.
const (
	SSE       Transport = "sse"
	WebSocket Transport = "websocket"
)

// End is why the stream of a reader has ended.
type End string

// The ends of streams.
const (
	EndLifetime End = "lifetime" // its time was over
	EndSize     End = "size"     // it has got as many bytes as the server permits
	EndShutdown End = "shutdown" // the process stops
	EndSlow     End = "slow"     // the reader did not read
	EndGone     End = "gone"     // the reader has disconnected
	EndLost     End = "lost"     // the server cannot continue the stream
	EndRevoked  End = "revoked"  // the reader's token was revoked or has expired
)

// Target is what gets events from a relay.
type Target string

// The targets, in the order in which an event reaches them.
const (
	ToFeed     Target = "feed"
	ToBus      Target = "bus"
	ToWebhooks Target = "webhooks"
)

// Outcome is the answer to an attempt to deliver an event to a webhook.
type Outcome string

// The outcomes beside the classes of HTTP statuses, such as "2xx".
const (
	OutcomeTimeout    Outcome = "timeout"    // no answer in time
	OutcomeRefused    Outcome = "refused"    // the address is not permitted, and there was no request
	OutcomeConnection Outcome = "connection" // no connection: DNS, TCP or TLS failed
)

// OutcomeOf returns the outcome of an answer with an HTTP status.
func OutcomeOf(status int) Outcome {
	const class = 100
	return Outcome(strconv.Itoa(min(max(status/class, 1), 5)) + "xx")
}

// Halt is why deliveries to a webhook stop or are held back.
type Halt string

// The halts.
const (
	HaltCircuit  Halt = "circuit"  // failures in a row have opened the circuit breaker
	HaltFailing  Halt = "failing"  // no success for a day; a warning
	HaltDisabled Halt = "disabled" // no success for five days
	HaltGone     Halt = "gone"     // disabled by the answer 410
)

// Standing is whether a webhook gets events.
type Standing string

// The standings.
const (
	StandingActive   Standing = "active"
	StandingCircuit  Standing = "circuit" // active, with an open circuit breaker
	StandingPaused   Standing = "paused"
	StandingDisabled Standing = "disabled"
)

// Standings lists the standings.
func Standings() []Standing {
	return []Standing{StandingActive, StandingCircuit, StandingPaused, StandingDisabled}
}

// LabelValues returns the values of a label that has a closed list, in order.
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

// Recorder records samples of counters and histograms. It is safe for concurrent use and
// returns at once. ctx is that of what is measured.
type Recorder func(ctx context.Context, samples ...Sample)

// Discard is a Recorder without an effect.
func Discard(context.Context, ...Sample) {}

// Reader reads the samples of gauges.
type Reader func(context.Context) ([]Sample, error)

// AllOf returns several readers as one.
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

// Count returns the increment of a counter.
func Count(name string, n int, labels ...string) Sample { return Sample{name, float64(n), labels} }
