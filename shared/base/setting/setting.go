// Package setting reads typed settings from environment variables or from keys of a
// document.
//
// A program declares a list of settings, each bound to a field of its configuration. Read
// parses all of them and returns all problems at once, each with the name of its setting.
// The documentation is generated from the same list. An empty value counts as absent.
package setting

import (
	"errors"
	"fmt"
)

// Setting is one setting. The functions that return a Setting are named after the type of
// its value, such as Bool.
type Setting struct {
	// Name is the name of the variable or the key.
	Name string
	// Default is the text that is parsed if no value is given.
	Default string
	// Meaning is a phrase that describes the setting in the documentation.
	Meaning string

	parse func(text string) error
}

// Func returns a setting that calls parse with its value or default. The error of parse says
// which values are valid. Read adds the name of the setting.
func Func(name, fallback, meaning string, parse func(text string) error) Setting {
	return Setting{name, fallback, meaning, parse}
}

// Lookup returns the value with a name, and whether it exists, like os.LookupEnv.
type Lookup func(name string) (string, bool)

// Map returns a Lookup that reads from a map.
func Map(values map[string]string) Lookup {
	return func(name string) (string, bool) { value, ok := values[name]; return value, ok }
}

// Read parses the settings into the fields that they are bound to. given contains the names
// of the settings for which lookup returned a value that is not empty. The error joins all
// problems, each with the name of its setting.
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

// Names returns the names of the settings, in their order.
func Names(settings []Setting) []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.Name
	}
	return names
}
