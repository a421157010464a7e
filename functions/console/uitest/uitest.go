// Package uitest renders parts of pages for tests.
package uitest

import (
	"strings"
	"testing"

	"maragu.dev/gomponents"
)

// Text returns the HTML of a node.
func Text(t testing.TB, node gomponents.Node) string {
	t.Helper()
	var text strings.Builder
	if err := node.Render(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
