package formats

import (
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/record"
)

// NameType is personal or corporate, as in MODS.
type NameType string

// The two types of names.
const (
	Personal  NameType = "personal"
	Corporate NameType = "corporate"
)

// bodyWords are words that occur only in names of corporate bodies. They are compared with
// whole words. None of them is a common surname.
const bodyWords = ` administration agency archives archive association board bureau cabinet centre center club college commission
 committee company conference congress corporation council department division federation foundation government
 institute institution laboratory league libraries library ltd ministry museum newspaper office organisation organization
 press project school senate services society staff studio survey trust union university `

// Creator returns the type of a creator's name, which the pinax does not have. The name is
// corporate if it equals the institution, if the graph has an organization with that label, or
// if it contains a word of a corporate body and is not inverted.
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
