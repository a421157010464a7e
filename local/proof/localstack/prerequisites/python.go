package prerequisites

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// question is a script that only a Python with virtual environments can run.
const question = "import ensurepip, ssl, sys, venv; print('%d.%d' % sys.version_info[:2])"

// python finds a Python 3.13, because LocalStack 4.14 requires this version.
func (s *search) python() string {
	const how = "Python 3.13 with venv%s: pyenv install 3.13, uv python install 3.13, apt install python3.13-venv or brew install python@3.13; PYTHON313 may name its file"
	if named, ok := s.Env("PYTHON313"); ok && named != "" {
		if text, _ := s.run(named, "-c", question); strings.TrimSpace(text) != "3.13" {
			s.lack(how, printed(named, text))
		}
		return named
	}
	for _, file := range s.pythons("3.13") {
		if text, err := s.run(file, "-c", question); err == nil && strings.TrimSpace(text) == "3.13" {
			return file
		}
	}
	s.lack(how, "")
	return ""
}

// PythonOf returns a Python with venv of a version such as "3.11". PYTHON313 can name the file
// of Python 3.13.
func (h Host) PythonOf(ctx context.Context, version string) (string, error) {
	s := &search{h, ctx, nil}
	if version == "3.13" {
		file := s.python()
		return file, s.result()
	}
	for _, file := range s.pythons(version) {
		if text, err := s.run(file, "-c", question); err == nil && strings.TrimSpace(text) == version {
			return file, nil
		}
	}
	s.lack("Python %[1]s with venv: pyenv install %[1]s, uv python install %[1]s or apt install python%[1]s-venv", version)
	return "", s.result()
}

// Python27 returns a Python 2.7 with pip, for programs that do not run on a newer version.
// PYTHON27 can name its file.
func (h Host) Python27(ctx context.Context) (string, error) {
	s := &search{h, ctx, nil}
	files := s.pythons("2.7")
	if named, ok := h.Env("PYTHON27"); ok && named != "" {
		files = []string{named}
	}
	for _, file := range files {
		if text, err := s.run(file, "-m", "pip", "--version"); err == nil && strings.Contains(text, "(python 2.7)") {
			return file, nil
		}
	}
	s.lack("Python 2.7 with pip: pyenv install 2.7; PYTHON27 may name its file")
	return "", s.result()
}

// pythons returns the files that could be a Python of the version, the most likely first.
func (s *search) pythons(version string) []string {
	var files []string
	for _, name := range []string{"python" + version, "python3"} {
		if file, found := s.look(name); found {
			files = append(files, file)
		}
	}
	root, ok := s.Env("PYENV_ROOT")
	if !ok || root == "" {
		home, _ := s.Env("HOME")
		root = filepath.Join(home, ".pyenv")
	}
	// The newest patch version is the last one. The pattern is valid.
	versions, _ := filepath.Glob(filepath.Join(root, "versions", version+"*", "bin", "python"))
	slices.Reverse(versions)
	files = append(files, versions...)
	if uv, found := s.look("uv"); found {
		if text, err := s.run(uv, "python", "find", "--no-python-downloads", version); err == nil {
			files = append(files, firstLine(text))
		}
	}
	return files
}
