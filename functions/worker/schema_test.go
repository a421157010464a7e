package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jacoelho/xsd"
)

var targetNamespace = regexp.MustCompile(`targetNamespace="([^"]+)"`)

// schema compiles all files of testdata/schemas into one schema, once. A document
// is validated by the file that declares the namespace of its root element.
var schema = sync.OnceValues(func() (*xsd.Schema, error) {
	const folder, all = "testdata/schemas", "all.xsd"
	files := fstest.MapFS{}
	imports := `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">`
	names, err := filepath.Glob(folder + "/*.xsd")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		match := targetNamespace.FindSubmatch(text)
		if match == nil {
			return nil, fmt.Errorf("%s: missing targetNamespace", name)
		}
		imports += fmt.Sprintf(`<xs:import namespace="%s" schemaLocation="%s"/>`, match[1], filepath.Base(name))
		files[filepath.Base(name)] = &fstest.MapFile{Data: text}
	}
	files[all] = &fstest.MapFile{Data: []byte(imports + `</xs:schema>`)}
	return xsd.LoadWithOptions(files, all, xsd.NewLoadOptions())
})

// validate returns the first difference between a document and its schema.
func validate(t failer, doc string) error {
	t.Helper()
	s, err := schema()
	if err != nil {
		t.Fatalf("cannot compile the schemas: %v", err)
	}
	return s.Validate(strings.NewReader(doc))
}

// wantValid fails the test if a document does not match its schema.
func wantValid(t failer, doc string) {
	t.Helper()
	if err := validate(t, doc); err != nil {
		if len(doc) > 4000 {
			doc = doc[:4000] + "…"
		}
		t.Errorf("got an invalid document: %v\n%s", err, doc)
	}
}

func TestSchemasRejectInvalidDocuments(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, doc string }{
		{"empty collection", `<modsCollection xmlns="http://www.loc.gov/mods/v3"/>`},
		{"foreign element", `<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:nonsense/></oai_dc:dc>`},
		{"no leader", `<record xmlns="http://www.loc.gov/MARC21/slim"><controlfield tag="001">x</controlfield></record>`},
		{"no schema", `<record xmlns="https://example.org/unknown"/>`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if validate(t, row.doc) == nil {
				t.Error("got a valid document, want an error")
			}
		})
	}
}

// failer is the common interface of testing.T and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}
