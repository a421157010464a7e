package jobfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// Images parses the values NAME=PROGRAM of --image. PROGRAM is a path, or a name in PATH, with
// the first arguments separated by spaces. Machines run in other folders, so programs and
// arguments that name a file become absolute.
func Images(bindings []string) (map[string][]string, error) {
	bound := map[string][]string{}
	for _, binding := range bindings {
		name, program, ok := strings.Cut(binding, "=")
		if !ok || name == "" {
			return nil, argument.Invalid("--image: malformed value %q, want NAME=PROGRAM", binding)
		}
		if _, twice := bound[name]; twice {
			return nil, argument.Invalid("--image: %s is bound twice", name)
		}
		argv, err := SplitWords(program)
		if err != nil {
			return nil, argument.Invalid("--image %s: %v", name, err)
		}
		if len(argv) == 0 {
			return nil, argument.Invalid("--image %s: missing program", name)
		}
		path, err := exec.LookPath(argv[0])
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return nil, argument.Invalid("--image %s: cannot run %s: %v", name, argv[0], errors.Unwrap(err))
		}
		if argv[0], err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("cannot find the program of image %s: %w", name, err)
		}
		for i, arg := range argv[1:] {
			if argv[i+1], err = absolute(arg); err != nil {
				return nil, argument.Invalid("--image %s: %v", name, err)
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

// Scheme is the prefix of an image that is a program of the server's machine.
const Scheme = "exec:"

// Absolute makes the paths of a program exec: absolute: the program, which is a path or a name
// in PATH, and the arguments that name existing files. Paths are relative to folder. It reports
// whether something changed.
func Absolute(d *job.Definition, folder string) (changed bool, err error) {
	program, ok := strings.CutPrefix(d.Image, Scheme)
	if !ok {
		return false, nil
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return false, fmt.Errorf("cannot find the folder of the program: %w", err)
	}
	if !filepath.IsAbs(program) {
		found, err := exec.LookPath(program)
		if local, missing := exec.LookPath(filepath.Join(folder, program)); err != nil && missing == nil || strings.Contains(program, "/") {
			found, err = local, missing
		}
		if info, missing := os.Stat(filepath.Join(folder, program)); err != nil && missing == nil && info.Mode().IsRegular() {
			return false, fmt.Errorf("not executable: want an interpreter first, such as python3 %s, or its mode changed with chmod +x", program)
		}
		if err != nil {
			return false, fmt.Errorf("cannot find the program in %s and in PATH: %w", folder, errors.Unwrap(err))
		}
		if d.Image, changed = Scheme+found, true; !filepath.IsAbs(found) {
			return false, fmt.Errorf("cannot use the program %s of a relative folder in PATH, want an absolute one", found)
		}
	}
	command := slices.Clone(d.Command)
	for i, arg := range command {
		path := filepath.Join(folder, arg)
		explicit := arg == "." || arg == ".." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../")
		if info, err := os.Stat(path); arg != "" && !filepath.IsAbs(arg) && arg[0] != '-' && err == nil && (explicit || !info.IsDir()) {
			command[i], changed = path, true
		}
	}
	d.Command = command
	return changed, nil
}

// CheckImage returns an error for an image that is the path of a program.
func CheckImage(image string) error {
	if _, err := exec.LookPath(image); err != nil || !filepath.IsAbs(image) && !strings.HasPrefix(image, "./") && !strings.HasPrefix(image, "../") {
		return nil //nolint:nilerr // it is the name of an image
	}
	return argument.Invalid("IMAGE %s: this is a program of this machine, want %s%s", image, Scheme, image)
}

// SplitWords splits a text at spaces, as a shell does. Single quotes preserve everything,
// double quotes everything except \" and \\. Outside of quotes a backslash preserves the next
// character. It expands nothing.
func SplitWords(text string) ([]string, error) {
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
