package httpkit_test

import (
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestAcceptedContentType(t *testing.T) {
	t.Parallel()
	const object, lines, signed = "application/json", "application/x-ndjson", "application/vnd.dsse+x-ndjson"
	for accept, want := range map[string]string{
		"": object, "*/*": object, "application/*": object, "application/json, */*;q=0.5": object,
		lines: lines, "Application/X-NDJSON": lines, signed: signed, "text/html, " + signed + ";q=0.1": signed,
		lines + ";q=0.5, " + signed: signed, "*/*, application/json;q=0": lines, lines + ", " + object: object,
		"application/json;q=0.2, application/*;q=0.7": lines,
		"text/html": "", "text/*": "", "*/*;q=0": "", "application/json;q=none": "", "application/ndjson": "", ";;": "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		got, err := httpkit.Accepted(r, object, lines, signed)
		if got != want || (err == nil) != (want != "") || err != nil && httpkit.ProblemOf(err).Body.Status != http.StatusNotAcceptable {
			t.Errorf("%q: got %q, %v, want %q", accept, got, err, want)
		}
	}
}
