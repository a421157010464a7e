package worker

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jacoelho/xsd"
)

// schemas are compiled once, by file.
var schemas = struct {
	sync.Mutex
	byFile map[string]*xsd.Schema
}{byFile: map[string]*xsd.Schema{}}

func schema(t failer, file string) *xsd.Schema {
	t.Helper()
	schemas.Lock()
	defer schemas.Unlock()
	if s := schemas.byFile[file]; s != nil {
		return s
	}
	s, err := xsd.LoadWithOptions(os.DirFS("testdata/schemas"), file, xsd.NewLoadOptions())
	if err != nil {
		t.Fatalf("cannot compile %s: %v", file, err)
	}
	schemas.byFile[file] = s
	return s
}

// schemaOf returns the schema of a format.
func schemaOf(format string, collection bool) string {
	switch {
	case format == "mods":
		return "mods-3-8.xsd"
	case format == "marcxml":
		return "MARC21slim.xsd"
	case collection:
		return "oai-pmh-oai_dc.xsd"
	}
	return "oai_dc.xsd"
}

// wantValid validates a document against its schema.
func wantValid(t failer, format string, collection bool, doc string) {
	t.Helper()
	if err := schema(t, schemaOf(format, collection)).Validate(strings.NewReader(doc)); err != nil {
		if len(doc) > 4000 {
			doc = doc[:4000] + "…"
		}
		t.Errorf("got an invalid %s document: %v\n%s", format, err, doc)
	}
}

func TestSchemasRefuseInvalidDocuments(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, format, doc string }{
		{"empty collection", "mods", `<modsCollection xmlns="http://www.loc.gov/mods/v3"/>`},
		{"foreign element", "dc", `<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:nonsense/></oai_dc:dc>`},
		{"no leader", "marcxml", `<record xmlns="http://www.loc.gov/MARC21/slim"><controlfield tag="001">x</controlfield></record>`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if schema(t, schemaOf(row.format, false)).Validate(strings.NewReader(row.doc)) == nil {
				t.Error("got no error of the schema")
			}
		})
	}
}

// failer is the part of testing.T that rapid.T has too.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}
