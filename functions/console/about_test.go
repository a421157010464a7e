package console_test

import (
	"strings"
	"testing"
)

func TestAboutShowsWhatTheReaderMaySee(t *testing.T) {
	t.Parallel()
	h := setupInference(t)
	h.signedIn(t, ownerToken).page("/console/about", "Server", "Works", "pool0", "project:main", "json/openapi.json", "json/metrics", "<code>SORTIE_REGION</code>", "ord &lt;b&gt;", "runs:write")
	text := h.signedIn(t, readerToken).page("/console/about", "runs:read", "json/openapi.json", "pool0")
	for _, hidden := range []string{"json/metrics", "SORTIE_REGION", "inference/budget"} {
		if strings.Contains(text, hidden) {
			t.Errorf("got %q for a reader", hidden)
		}
	}
	if text := h.signedIn(t, otherToken).page("/console/about"); strings.Contains(text, "pool0") {
		t.Error("got a pool of another tenant")
	}
}
