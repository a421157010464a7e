package samples_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/samples/cid"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// manifest has the fields of an entity that a client reads.
type manifest struct {
	PI         string            `json:"pi"`
	CID        string            `json:"manifest_cid"`
	Components map[string]string `json:"components"`
	Children   []string          `json:"children_pi"`
	Parent     string            `json:"parent_pi"`
}

// client reads a served collection, like an exporter.
type client struct {
	t   *testing.T
	url string
}

func serve(t *testing.T, c *samples.Collection) *client {
	t.Helper()
	server := httptest.NewServer(c.Handler(clock.System{}))
	t.Cleanup(server.Close)
	return &client{t, server.URL}
}

// get returns the status and body. The status of an interrupted response is 0.
func (c *client) get(path string) (int, []byte) {
	c.t.Helper()
	response, err := http.Get(c.url + path)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, body
}

func (c *client) entity(pi string) manifest {
	c.t.Helper()
	status, body := c.get("/entities/" + pi)
	var m manifest
	if err := json.Unmarshal(body, &m); err != nil || status != http.StatusOK {
		c.t.Fatalf("entity %s: status %d, %v", pi, status, err)
	}
	return m
}

// component returns the bytes of a component and checks their CID.
func (c *client) component(m manifest, name string) string {
	c.t.Helper()
	status, body := c.get("/cat/" + m.Components[name])
	if status != http.StatusOK || string(cid.Raw(body)) != m.Components[name] {
		c.t.Fatalf("%s of %s: got status %d, %d bytes, or another CID", name, m.PI, status, len(body))
	}
	return string(body)
}

// all returns the manifests and texts of all served entities, starting at the roots.
func (c *client) all(col *samples.Collection) (texts []string, entities []manifest) {
	c.t.Helper()
	var queue []string
	for _, root := range col.Roots() {
		queue = append(queue, root.PI)
	}
	for len(queue) > 0 {
		m := c.entity(queue[0])
		queue = append(queue[1:], m.Children...)
		entities = append(entities, m)
		var text strings.Builder
		for _, name := range []string{"pinax.json", "cheimarros.json", "description.md", "note.ref.json"} {
			if m.Components[name] != "" {
				text.WriteString(c.component(m, name))
			}
		}
		texts = append(texts, text.String())
	}
	return texts, entities
}

// pinax has the fields of pinax.json that tests read.
type pinax struct {
	ID, Title, Type, Institution, Created, Language, Description, Rights string
	Creator, Subjects, Place                                             []string
}

func (c *client) pinax(m manifest) pinax {
	c.t.Helper()
	var p pinax
	if err := json.Unmarshal([]byte(c.component(m, "pinax.json")), &p); err != nil {
		c.t.Fatalf("pinax.json of %s: %v", m.PI, err)
	}
	return p
}

func fromEAD(t *testing.T) *samples.Collection {
	t.Helper()
	c, err := samples.FromEAD(os.DirFS("testdata/ead"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustGenerate(t *testing.T, seed uint64, shape samples.Shape) *samples.Collection {
	t.Helper()
	c, err := samples.Generate(seed, shape)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
