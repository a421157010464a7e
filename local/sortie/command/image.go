package command

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// images reads the values of --image: NAME=PROGRAM each, where PROGRAM is a
// path and, separated by spaces, first arguments.
func images(bindings []string) (map[string][]string, error) {
	bound := map[string][]string{}
	for _, binding := range bindings {
		name, program, ok := strings.Cut(binding, "=")
		if !ok || name == "" {
			return nil, wrong("--image %s is not of the form NAME=PROGRAM", binding)
		}
		if _, twice := bound[name]; twice {
			return nil, wrong("--image binds %s twice", name)
		}
		argv, err := splitWords(program)
		if err != nil {
			return nil, wrong("--image %s: %v", name, err)
		}
		if len(argv) == 0 {
			return nil, wrong("--image %s names no program", name)
		}
		path, err := exec.LookPath(argv[0])
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return nil, wrong("--image %s: %s cannot be run: %v", name, argv[0], errors.Unwrap(err))
		}
		if argv[0], err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("cannot find the program of image %s: %w", name, err)
		}
		bound[name] = argv
	}
	return bound, nil
}

// splitWords splits a text at its spaces, as a shell does: single quotes keep
// everything, double quotes everything but \" and \\, and outside of quotes a
// backslash keeps the character after it. Nothing is expanded.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	within, begun, escaped := rune(0), false, false
	for _, r := range text {
		switch {
		case escaped:
			if within == '"' && r != '"' && r != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && within != '\'':
			begun, escaped = true, true
		case within != 0 && r == within:
			within = 0
		case within != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			begun, within = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	switch {
	case within != 0:
		return nil, fmt.Errorf("a quote (%c) is not closed", within)
	case escaped:
		return nil, errors.New(`a \ stands at the end`)
	case begun:
		words = append(words, word.String())
	}
	return words, nil
}
