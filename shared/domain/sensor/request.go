package sensor

// Request is the request of a client that sends events. Identity is the client.
type Request[Identity any] struct {
	Identity      Identity
	CorrelationID string
	// TraceParent is the W3C trace context; empty without one.
	TraceParent string
}
