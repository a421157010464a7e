package outside

import (
	"net/http"
	"testing"
)

// TestRemappedHeadersAreDeclared checks that a renamed header is restored, but is an error
// unless the target declares it. Without the error the suite would hide a renaming that clients
// see.
func TestRemappedHeadersAreDeclared(t *testing.T) {
	t.Parallel()
	const remapped, own = "X-Amzn-Remapped-Www-Authenticate", "Www-Authenticate"
	for _, row := range []struct {
		name     string
		header   http.Header
		declared []string
		valid    bool
		restored string
	}{
		{"renamed and declared", http.Header{remapped: {"Bearer"}}, []string{own}, true, own},
		{"renamed and not declared", http.Header{remapped: {"Bearer"}}, nil, false, own},
		{"declared and not renamed", http.Header{own: {"Bearer"}}, []string{own}, false, own},
		{"neither", http.Header{own: {"Bearer"}}, nil, true, own},
		{"a header of the connection", http.Header{"X-Amzn-Remapped-Date": {"x"}}, nil, true, "Date"},
	} {
		if err := restoreHeaders(row.header, row.declared); (err == nil) != row.valid {
			t.Errorf("%s: got %v, want valid=%t", row.name, err, row.valid)
		}
		if len(row.header) != 1 || row.header[row.restored] == nil {
			t.Errorf("%s: got %v, want %s alone", row.name, row.header, row.restored)
		}
	}
}
