package stack_test

import "testing"

// TestStackHasRoomForMore counts the resources with every option. CloudFormation permits 500
// in a stack. A function with a route of its own takes about twelve, so that six more fit in.
func TestStackHasRoomForMore(t *testing.T) {
	t.Parallel()
	const most = 420
	if n := len(everything(t).Resources); n > most {
		t.Errorf("got %d resources, want at most %d", n, most)
	}
	if n := len(deployed(t).Resources); n == 0 || n > len(everything(t).Resources) {
		t.Errorf("got %d resources without options, want some of those with every option", n)
	}
}
