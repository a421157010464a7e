// Package setting reads typed settings from variables of the environment or from
// keys of a document.
//
// A program declares its settings as a list, each bound to a field of its
// configuration. Read parses all of them and reports every problem at once, by name;
// the same list is the documentation. An empty value counts as absent.
package setting

import (
	"errors"
	"fmt"
)

// Setting is one setting. Its constructors are named after the types that they
// parse.
type Setting struct {
	// Name is the variable or key.
	Name string
	// Default is parsed where no value is given.
	Default string
	// Meaning is one phrase for documentation.
	Meaning string

	parse func(text string) error
}

// Func returns a setting that parse reads. Its error says what would be right; Read
// adds the name.
func Func(name, fallback, meaning string, parse func(text string) error) Setting {
	return Setting{name, fallback, meaning, parse}
}

// Lookup finds a value by name, as os.LookupEnv does.
type Lookup func(name string) (string, bool)

// Map returns the Lookup of a map.
func Map(values map[string]string) Lookup {
	return func(name string) (string, bool) { value, ok := values[name]; return value, ok }
}

// Read parses the settings into the fields that they are bound to. given has the
// names that lookup has a value for. The error joins every problem, each with its
// name.
func Read(lookup Lookup, settings []Setting) (given map[string]bool, err error) {
	given = map[string]bool{}
	var problems []error
	for _, s := range settings {
		text, ok := lookup(s.Name)
		if ok && text != "" {
			given[s.Name] = true
		} else {
			text = s.Default
		}
		if err := s.parse(text); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return given, errors.Join(problems...)
}

// Names lists the names of the settings.
func Names(settings []Setting) []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.Name
	}
	return names
}
