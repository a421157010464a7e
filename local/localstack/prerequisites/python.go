package prerequisites

import (
	"path/filepath"
	"slices"
	"strings"
)

// question is a script that only a Python with virtual environments can run.
const question = "import ensurepip, ssl, sys, venv; print('%d.%d' % sys.version_info[:2])"

// python finds a Python 3.13: LocalStack 4.14 runs on no other version.
func (s *search) python() string {
	const how = "Python 3.13 with venv%s: pyenv install 3.13, uv python install 3.13, apt install python3.13-venv or brew install python@3.13; PYTHON313 may name its file"
	if named, ok := s.Env("PYTHON313"); ok && named != "" {
		if text, _ := s.run(named, "-c", question); strings.TrimSpace(text) != "3.13" {
			s.lack(how, printed(named, text))
		}
		return named
	}
	for _, file := range s.pythons() {
		if text, err := s.run(file, "-c", question); err == nil && strings.TrimSpace(text) == "3.13" {
			return file
		}
	}
	s.lack(how, "")
	return ""
}

// pythons returns the files that may be a Python 3.13, the most likely first.
func (s *search) pythons() []string {
	var files []string
	for _, name := range []string{"python3.13", "python3"} {
		if file, found := s.look(name); found {
			files = append(files, file)
		}
	}
	root, ok := s.Env("PYENV_ROOT")
	if !ok || root == "" {
		home, _ := s.Env("HOME")
		root = filepath.Join(home, ".pyenv")
	}
	// The newest patch version is the last; the pattern is valid.
	versions, _ := filepath.Glob(filepath.Join(root, "versions", "3.13*", "bin", "python"))
	slices.Reverse(versions)
	files = append(files, versions...)
	if uv, found := s.look("uv"); found {
		if text, err := s.run(uv, "python", "find", "--no-python-downloads", "3.13"); err == nil {
			files = append(files, firstLine(text))
		}
	}
	return files
}
