package formats

import (
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/record"
)

// NameType is personal or corporate, as MODS has them.
type NameType string

// The two types that the export tells apart.
const (
	Personal  NameType = "personal"
	Corporate NameType = "corporate"
)

// Words that only a body's name has. A name is searched for whole words; none
// of them is a surname in use.
const bodyWords = ` administration agency archives archive association board bureau cabinet centre center club college commission
 committee company conference congress corporation council department division federation foundation government
 institute institution laboratory league libraries library ltd ministry museum newspaper office organisation organization
 press project school senate services society staff studio survey trust union university `

// Creator tells what kind of name a creator is. The pinax does not say. It is
// corporate where it is the institution itself, where the graph has an
// organization of that label, or where one of its words is a body's and it is
// not inverted; it is personal otherwise.
func Creator(e *record.Entity, name string) NameType {
	if e.Pinax != nil && strings.EqualFold(name, e.Pinax.Institution) {
		return Corporate
	}
	if e.Graph != nil {
		for _, node := range e.Graph.Nodes {
			if strings.EqualFold(node.Label, name) {
				switch node.Type {
				case "organization":
					return Corporate
				case "person":
					return Personal
				}
			}
		}
	}
	if family, _, inverted := strings.Cut(name, ","); inverted && !strings.Contains(family, " ") {
		return Personal // as catalogues write persons: "Press, Frank"
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), notLetter) {
		if strings.Contains(bodyWords, " "+word+" ") {
			return Corporate
		}
	}
	return Personal
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }
