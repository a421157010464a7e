package documents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/sortie/command"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// checker has the names that documents may mention.
type checker struct {
	// names are all files and folders. top are the top-level folders.
	names   map[string]bool
	top     []string
	targets map[string]bool
	anchors map[string][]string
}

var target = regexp.MustCompile(`(?m)^([a-z-]+):`)

func newChecker(t *testing.T, root string, files []string, all []document) checker {
	t.Helper()
	c := checker{names: map[string]bool{}, targets: map[string]bool{}, anchors: map[string][]string{}}
	for _, name := range files {
		for ; name != "."; name = path.Dir(name) {
			c.names[name] = true
			if path.Dir(name) == "." && !slices.Contains(files, name) && !slices.Contains(c.top, name) {
				c.top = append(c.top, name)
			}
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range target.FindAllSubmatch(makefile, -1) {
		c.targets[string(found[1])] = true
	}
	for _, d := range all {
		c.anchors[d.path] = d.anchors
	}
	return c
}

// link checks a link's target.
func (c checker) link(from, to string) error {
	if strings.Contains(to, "://") {
		return nil
	}
	name, anchor, _ := strings.Cut(to, "#")
	full := from
	if name != "" {
		full = path.Join(path.Dir(from), name)
	}
	switch {
	case !c.names[full]:
		return fmt.Errorf("link %s: got no file %s", to, full)
	case anchor != "" && !slices.Contains(c.anchors[full], anchor):
		return fmt.Errorf("link %s: got no heading for #%s in %s", to, anchor, full)
	}
	return nil
}

var (
	pathLike = regexp.MustCompile(`^(\./)?[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)+/?$`)
	// ours are the extensions that only files of the repository have.
	ours = []string{".go", ".md", ".yaml", ".json", ".sh", ".py", ".txt"}
	// placeholder matches a path segment to be replaced by a name.
	placeholder = regexp.MustCompile(`^([A-Z]+|(.*\.)?NAME[-._].*)$`)
)

// path checks a word that looks like a path, up to its first placeholder.
func (c checker) path(from, word string) error {
	word = strings.TrimSuffix(word, "/")
	if !pathLike.MatchString(word) {
		return nil
	}
	parts := strings.Split(path.Clean(word), "/")
	if i := slices.IndexFunc(parts, placeholder.MatchString); i >= 0 {
		parts = parts[:i]
	}
	if len(parts) == 0 || parts[0] == "bin" || parts[0] == "out" {
		return nil
	}
	if parts[0] == "infra" && len(parts) > 1 && (parts[1] == ".cdk" || parts[1] == ".build") {
		return nil // make creates this file
	}
	name := strings.Join(parts, "/")
	atTop := slices.Contains(c.top, parts[0])
	if !atTop && !slices.Contains(ours, path.Ext(name)) {
		return nil
	}
	for _, pattern := range []string{name, path.Join(path.Dir(from), name)} {
		if c.names[pattern] {
			return nil
		}
		if !strings.Contains(pattern, "*") {
			continue
		}
		for known := range c.names {
			if matches, err := path.Match(pattern, known); err == nil && matches {
				return nil
			}
		}
	}
	return fmt.Errorf("path %s: got no such file or folder", word)
}

// command checks a command. If whole is true, it must have all of its arguments.
func (c checker) command(from string, words []string, whole bool) error {
	for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	switch name := strings.TrimPrefix(words[0], "bin/"); name {
	case "make":
		for _, word := range words[1:] {
			if !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") && !c.targets[word] {
				return fmt.Errorf("make %s: got no such target", word)
			}
		}
	case "go":
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "./") && !c.names[strings.TrimSuffix(path.Clean(word), "/...")] {
				return fmt.Errorf("go %s: got no package %s", words[1], word)
			}
		}
	case "sortie":
		return sortie(words[1:], whole)
	}
	for _, word := range words[1:] {
		if err := c.path(from, word); err != nil {
			return err
		}
	}
	return nil
}

// sortie parses a command line with the real command tree.
func sortie(args []string, whole bool) error {
	root := command.Tree()
	cmd, rest, err := root.Find(args)
	if err == nil {
		cmd.InitDefaultHelpFlag()
		err = cmd.ParseFlags(rest)
	}
	if help := cmd.Flags().Lookup("help"); err != nil || help != nil && help.Changed {
		return err
	}
	rest = cmd.Flags().Args()
	if takesNone := !strings.Contains(cmd.Use, " "); takesNone && cmd.HasSubCommands() && len(rest) > 0 {
		return fmt.Errorf("sortie %s: got no subcommand %s", strings.Join(args, " "), rest[0])
	}
	if whole {
		err = cmd.ValidateArgs(rest)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.HasSuffix(f.Usage, "(required)") && !f.Changed {
				err = errors.Join(err, fmt.Errorf("--%s is missing", f.Name))
			}
		})
	}
	if err != nil {
		return fmt.Errorf("sortie %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// TestNamesExist checks the links, paths and commands of every document.
func TestNamesExist(t *testing.T) {
	t.Parallel()
	root, files := repository(t)
	all := documents(t, root, files)
	c := newChecker(t, root, files, all)
	for _, d := range all {
		for _, to := range d.links {
			if err := c.link(d.path, to); err != nil {
				t.Errorf("%s: %v", d.path, err)
			}
		}
		for _, code := range d.code {
			if err := c.path(d.path, code); err != nil {
				t.Errorf("%s: %v", d.path, err)
			}
			for _, words := range commands(code) {
				if len(words) > 1 {
					if err := c.command(d.path, words, false); err != nil {
						t.Errorf("%s: %v", d.path, err)
					}
				}
			}
		}
		for _, b := range d.blocks {
			if b.language != "sh" {
				continue
			}
			for _, words := range commands(b.text) {
				if err := c.command(d.path, words, true); err != nil {
					t.Errorf("%s:%d: %v", d.path, b.line, err)
				}
			}
		}
	}
}

// TestFoldersAreDescribed checks the tables whose first column is headed "folder". Every row
// names a folder, and every folder next to the README has a row.
func TestFoldersAreDescribed(t *testing.T) {
	t.Parallel()
	root, files := repository(t)
	for _, d := range documents(t, root, files) {
		var rows []string
		for _, table := range d.tables {
			if table[0] != "folder" || strings.Contains(d.path, "testdata") {
				continue
			}
			for _, cell := range table[1:] {
				for name := range strings.SplitSeq(cell, ", ") {
					if found := link.FindStringSubmatch(name); found != nil {
						name = path.Dir(found[1])
					}
					name = strings.TrimSuffix(strings.Trim(name, "`"), "/")
					name = strings.TrimPrefix(name, path.Dir(d.path)+"/")
					if info, err := os.Stat(filepath.Join(root, path.Dir(d.path), name)); err != nil || !info.IsDir() {
						t.Errorf("%s: got a row for %s, want one for a folder", d.path, name)
					}
					rows = append(rows, name)
				}
			}
		}
		if rows == nil {
			continue
		}
		for _, name := range files {
			inside, err := filepath.Rel(path.Dir(d.path), name)
			folder, _, deeper := strings.Cut(filepath.ToSlash(inside), "/")
			if err == nil && deeper && folder != ".." && folder != "testdata" && !strings.HasPrefix(folder, ".") && !slices.Contains(rows, folder) {
				t.Errorf("%s: got no row for %s", d.path, folder)
				rows = append(rows, folder)
			}
		}
	}
}

// TestWorkflowRunsCI checks that the workflow runs .ci/run, and that the make targets in
// .ci/run exist.
func TestWorkflowRunsCI(t *testing.T) {
	t.Parallel()
	root, files := repository(t)
	c := newChecker(t, root, files, nil)
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	runs := func(step struct{ Run string }) bool { return step.Run == ".ci/run" }
	if !slices.ContainsFunc(workflow.Jobs["ci"].Steps, runs) {
		t.Error("ci.yml: got no step that runs .ci/run")
	}
	script, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, words := range commands(string(script)) {
		if words[0] == "step" && len(words) > 1 {
			steps++
			if err := c.command(".ci/run", words[1:], true); err != nil {
				t.Errorf(".ci/run: %v", err)
			}
		}
	}
	if steps == 0 {
		t.Error(".ci/run: got no steps")
	}
}

// TestExamplesOfHelpParse checks the examples in the help of each command.
func TestExamplesOfHelpParse(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, words := range commands(cmd.Example) {
			if words[0] != "sortie" {
				continue
			}
			if err := sortie(words[1:], true); err != nil {
				t.Errorf("example of %s: %v", cmd.CommandPath(), err)
			}
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(command.Tree())
}

// sdks are the folders of the SDKs by the languages of blocks that their own tests run.
var sdks = map[string]string{
	"python": "shared/sdk/python/", "js": "shared/sdk/typescript/", "ts": "shared/sdk/typescript/", "rust": "shared/sdk/rust/",
}

// TestBlocksAreChecked requires that a test can check each block, or that the block gives a
// reason.
func TestBlocksAreChecked(t *testing.T) {
	t.Parallel()
	root, files := repository(t)
	schemas, err := apicheck.Load(contract.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents(t, root, files) {
		for _, line := range d.indented {
			t.Errorf("%s:%d: got an indented code block, want a fenced one", d.path, line)
		}
		for _, b := range d.blocks {
			if why, marked := b.is("not run"); marked && len(why) < 8 {
				t.Errorf("%s:%d: got the reason %q, want one that explains", d.path, b.line, why)
			}
			_, generated := b.is("generated")
			switch b.language {
			case "sh":
				if hasComment(b.text) {
					t.Errorf("%s:%d: got a comment, which is an argument in zsh, want it before the block", d.path, b.line)
				}
			case "text", "mermaid":
			case "json":
				if !json.Valid([]byte(b.text)) {
					t.Errorf("%s:%d: got invalid JSON", d.path, b.line)
				}
				if name, ok := b.is("schema"); ok {
					if err := schemas.CheckSchema(name, []byte(b.text)); err != nil {
						t.Errorf("%s:%d: %v", d.path, b.line, err)
					}
				}
			case "go":
				if !generated {
					t.Errorf("%s:%d: got Go that nothing compiles, want a generated block", d.path, b.line)
				}
			default:
				if folder, ok := sdks[b.language]; !ok || !strings.HasPrefix(d.path, folder) {
					t.Errorf("%s:%d: got the language %q, want sh, text, json, go, mermaid, or the language of the folder's SDK", d.path, b.line, b.language)
				}
			}
		}
	}
}

// TestWrongNamesAreFound checks the checker.
func TestWrongNamesAreFound(t *testing.T) {
	t.Parallel()
	root, files := repository(t)
	c := newChecker(t, root, files, documents(t, root, files))
	for _, line := range []string{
		"make no-such-target", "go test ./shared/nothing", "bin/sortie expotr mods", "sortie export mods", "sortie runs --no-such-flag",
		"sortie asl no-such", "cat shared/nothing.go", "x=$(make no-such-target)", `echo "$(sortie runs extra)"`, "true && sortie status",
	} {
		found := false
		for _, words := range commands(line) {
			found = found || c.command("README.md", words, true) != nil
		}
		if !found {
			t.Errorf("%s: got no error", line)
		}
	}
	for _, to := range []string{"nothing.md", "#no-such-heading", "shared/README.md#no-such-heading"} {
		if c.link("README.md", to) == nil {
			t.Errorf("link %s: got no error", to)
		}
	}
}
