package docs

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// group is the documents for one kind of reader.
type group struct {
	title     string
	documents []string
}

// readers are the groups with their first documents. The last one has all others too.
var readers = []group{
	{"Start", []string{"README.md", "local/README.md"}},
	{"Jobs", []string{"shared/domain/job/TUTORIAL.md", "shared/domain/job/README.md", "shared/domain/job/CHILDREN.md", "shared/domain/job/SENSORS.md", "shared/domain/job/FILES.md", "shared/base/hook/README.md", "shared/sdk/examples/README.md"}},
	{"Workers", []string{
		"shared/sdk/go/worker/README.md", "shared/sdk/go/README.md", "shared/sdk/python/README.md", "shared/sdk/typescript/README.md",
		"shared/sdk/rust/README.md", "shared/wire/contract/worker.md",
	}},
	{"Events", []string{"events/README.md", "shared/app/stream/README.md", "shared/domain/webhook/README.md", "shared/wire/contract/events.md"}},
	{"Inference", []string{"shared/domain/inference/README.md"}},
	{"Operate", []string{
		"shared/domain/series/README.md", ".github/SECURITY.md", "shared/adapter/kubernetes/README.md", "shared/adapter/container/README.md",
		"local/proof/bench/README.md", "CHANGELOG.md",
	}},
	{"Deploy", []string{"infra/README.md", "local/proof/cost/README.md"}},
	{"Contribute", []string{".github/CONTRIBUTING.md", "shared/README.md", "statemachines/README.md"}},
}

// grouped returns the groups of the documents that exist.
func grouped(exist map[string]bool) (groups []group) {
	for i, g := range readers {
		var found []string
		for _, document := range g.documents {
			if exist[document] {
				found = append(found, document)
				delete(exist, document)
			}
		}
		if i == len(readers)-1 {
			found = append(found, slices.Sorted(maps.Keys(exist))...)
		}
		groups = append(groups, group{g.title, found})
	}
	return groups
}

// layout returns a page with the navigation of the site.
func (s *Site) layout(name, title, body string) ([]byte, error) {
	page := HTML(
		Lang("en"),
		Head(
			Meta(Charset("utf-8")), Meta(Name("viewport"), Content("width=device-width, initial-scale=1")),
			Meta(Name("color-scheme"), Content("light dark")),
			TitleEl(Text(title+" - Sortie")), Link(Rel("stylesheet"), Href(styleName)),
		),
		Body(
			A(Class("skip"), Href("#content"), Text("Skip to the text")),
			Nav(Aria("label", "Documents"), Map(s.groups, func(g group) Node {
				return Group{H2(Text(g.title)), Ul(Map(g.documents, func(d string) Node { return s.entry(name, s.names[d], s.title(d)) }))}
			}), H2(Text("Reference")), Ul(s.entry(name, reference, "API"))),
			Main(ID("content"), Raw(body)),
		),
	)
	var text bytes.Buffer
	if err := Doctype(page).Render(&text); err != nil {
		return nil, fmt.Errorf("cannot write the page: %w", err)
	}
	return text.Bytes(), nil
}

// entry returns a link of the navigation.
func (s *Site) entry(current, name, title string) Node {
	return Li(A(Href(name), If(name == current, Aria("current", "page")), Text(title)))
}

func (s *Site) title(document string) string { return titleOf(s.files[document]) }
