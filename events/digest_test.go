package events_test

import (
	"testing"

	"github.com/sortie-dev/sortie/events"
)

func TestDigestIsOfTheCanonicalForm(t *testing.T) {
	t.Parallel()
	// printf '{"a":"€","b":[1,2.5]}' | sha256sum
	const want = "sha256:bc4add5c41fa4b4821b7b588d68cb02babc319039b43ef408c0f063f03baf210"
	for _, text := range []string{`{"a":"€","b":[1,2.5]}`, " {\"b\": [1.0, 2.50],\n \"a\":\"\\u20ac\"} "} {
		if got, err := events.Digest([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{``, `{"a":1e999}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`} {
		if got, err := events.Digest([]byte(text)); err == nil {
			t.Errorf("%s: got %s, want an error", text, got)
		}
	}
}
