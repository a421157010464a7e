package archtest

import (
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// imageBuild matches the command of a Dockerfile that builds its programs.
var imageBuild = regexp.MustCompile(`(?m)^ +go build .* -o \S+((?: \./\S+)+) \\$`)

// TestDockerfilesCopyWhatTheyBuild checks that the context of each image has the files that its
// programs are compiled from. The tests of images compile in the whole repository.
func TestDockerfilesCopyWhatTheyBuild(t *testing.T) {
	t.Parallel()
	dockerfiles := trackedText(t, "/Dockerfile", "/Dockerfile.dockerignore")
	images := 0
	for name, text := range dockerfiles {
		command := imageBuild.FindStringSubmatch(text)
		if command == nil {
			continue
		}
		images++
		var copied []string
		for line := range strings.Lines(text) {
			if words := strings.Fields(line); len(words) > 2 && words[0] == "COPY" && !strings.HasPrefix(words[1], "--") {
				copied = append(copied, words[1:len(words)-1]...)
			}
		}
		for _, file := range filesOf(t, strings.Fields(command[1])) {
			if !slices.ContainsFunc(copied, matcherOf(file)) || ignores(dockerfiles[name+".dockerignore"], file) {
				t.Errorf("%s: its programs are compiled from %s, want it in COPY and in Dockerfile.dockerignore", name, file)
			}
		}
	}
	if images < 4 {
		t.Errorf("got %d images, want those of the server, sortie-exec, the export worker and the agent", images)
	}
}

// ignores reports whether the last pattern of a dockerignore file that matches a file excludes it.
func ignores(patterns, file string) (ignored bool) {
	matches := matcherOf(file)
	for line := range strings.Lines(patterns) {
		if pattern, exception := strings.CutPrefix(strings.TrimSpace(line), "!"); matches(pattern) {
			ignored = !exception
		}
	}
	return ignored
}

// matcherOf returns a function that reports whether a pattern matches a file or a folder above it.
// Behind "**/" it may begin in any folder.
func matcherOf(file string) func(pattern string) bool {
	return func(pattern string) bool {
		element, anywhere := strings.CutPrefix(strings.TrimPrefix(pattern, "./"), "**/")
		for at := file; at != "."; at = path.Dir(at) {
			target := at
			if anywhere {
				target = path.Base(at)
			}
			if ok, _ := path.Match(element, target); ok {
				return true
			}
		}
		return false
	}
}

// filesOf returns go.mod, go.sum and the files of this module that programs are compiled from.
func filesOf(t *testing.T, programs []string) []string {
	t.Helper()
	const format = `{{if and .Module .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}`
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", format}, programs...)...) //nolint:gosec // G204: packages of this repository
	list.Dir, list.Env = root(t), append(list.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := []string{"go.mod", "go.sum"}
	for file := range strings.FieldsSeq(string(out)) {
		name, err := filepath.Rel(root(t), file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.ToSlash(name))
	}
	return files
}
