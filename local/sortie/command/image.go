package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// images parses the values NAME=PROGRAM of --image. PROGRAM is a path, or a name in PATH, with
// the first arguments separated by spaces. Machines run in other folders, so programs and
// arguments that name a file become absolute.
func images(bindings []string) (map[string][]string, error) {
	bound := map[string][]string{}
	for _, binding := range bindings {
		name, program, ok := strings.Cut(binding, "=")
		if !ok || name == "" {
			return nil, wrong("--image: malformed value %q, want NAME=PROGRAM", binding)
		}
		if _, twice := bound[name]; twice {
			return nil, wrong("--image: %s is bound twice", name)
		}
		argv, err := splitWords(program)
		if err != nil {
			return nil, wrong("--image %s: %v", name, err)
		}
		if len(argv) == 0 {
			return nil, wrong("--image %s: missing program", name)
		}
		path, err := exec.LookPath(argv[0])
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return nil, wrong("--image %s: cannot run %s: %v", name, argv[0], errors.Unwrap(err))
		}
		if argv[0], err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("cannot find the program of image %s: %w", name, err)
		}
		for i, arg := range argv[1:] {
			if argv[i+1], err = absolute(arg); err != nil {
				return nil, wrong("--image %s: %v", name, err)
			}
		}
		bound[name] = argv
	}
	return bound, nil
}

// absolute returns an argument, with the path of an existing file made absolute. It returns an
// error if an argument starts with "./" or "../" and names no file.
func absolute(arg string) (string, error) {
	if arg == "" || filepath.IsAbs(arg) || strings.HasPrefix(arg, "-") {
		return arg, nil
	}
	info, err := os.Stat(arg)
	explicit := strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../")
	exists := err == nil
	switch {
	case !exists && explicit:
		return "", fmt.Errorf("argument %s does not exist", arg)
	case !exists || info.IsDir() && !explicit:
		return arg, nil // not a path
	}
	return filepath.Abs(arg)
}

// splitWords splits a text at spaces, as a shell does. Single quotes preserve everything,
// double quotes everything except \" and \\. Outside of quotes a backslash preserves the next
// character. It expands nothing.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, inWord, escaped := rune(0), false, false
	for _, r := range text {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			inWord, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inWord, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Errorf("unclosed quote %c", quote)
	case escaped:
		return nil, errors.New(`trailing \`)
	case inWord:
		words = append(words, word.String())
	}
	return words, nil
}
