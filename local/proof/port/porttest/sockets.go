package porttest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/port"
)

// SocketsHarness is an adapter of port.Sockets.
type SocketsHarness struct {
	Sockets port.Sockets
	// Connect opens a connection. Sent returns the messages that the connection has received
	// since the previous call. Open reports whether the connection is open.
	Connect func(id string)
	Sent    func(id string) []string
	Open    func(id string) bool
}

// Sockets is the conformance suite of port.Sockets.
func Sockets(t *testing.T, open func(t *testing.T) SocketsHarness) {
	t.Helper()
	const id, other = "L0SM9cOFvHcCIhw=", "b/c?d" // IDs of API Gateway end with "="
	long := strings.Repeat("ü", 60<<10)
	t.Run("a reader gets its messages in order", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.Connect(id)
		s.Connect(other)
		for _, m := range []string{`{"a":1}`, long, "last"} {
			if err := s.Sockets.Send(t.Context(), id, []byte(m)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Sockets.Send(t.Context(), other, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if got := s.Sent(id); !slices.Equal(got, []string{`{"a":1}`, long, "last"}) {
			t.Errorf("got %d messages, want the three", len(got))
		}
		if got := s.Sent(other); !slices.Equal(got, []string{"x"}) {
			t.Errorf("got %q, want x", got)
		}
	})
	t.Run("a closed connection is gone", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.Connect(id)
		for range 2 { // the second call finds no connection
			if err := s.Sockets.Disconnect(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		if s.Open(id) {
			t.Error("got an open connection, want it closed")
		}
		for _, gone := range []string{id, other} {
			if err := s.Sockets.Send(t.Context(), gone, []byte("x")); !errors.Is(err, port.ErrGone) {
				t.Errorf("%s: got %v, want ErrGone", gone, err)
			}
		}
	})
}
