package servers

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// vllmStandIns is the version of the libraries that replaceCUDA writes. An installation has
// those of one version.
const vllmStandIns = "1"

// standIn is a library in the place of one of CUDA: the functions that others import from it.
type standIn struct {
	// versions are the functions of each version of symbols; those of "" have none.
	versions map[string][]string
}

// require adds a version, which a library must have also if it has none of its functions.
func (s *standIn) require(version string, functions ...string) {
	s.versions[version] = append(s.versions[version], functions...)
}

// isCUDA reports whether a function, or a library without "lib", has a name of CUDA.
func isCUDA(name string) bool {
	return slices.ContainsFunc([]string{"cu", "nv", "nccl"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// cudaStandIns returns what the libraries in a folder import from libraries of CUDA, which the
// folder does not have, by the names of those.
func cudaStandIns(folder string) (map[string]*standIn, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.so"))
	if err != nil {
		return nil, fmt.Errorf("cannot list libraries: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("missing libraries in %s", folder)
	}
	all := map[string]*standIn{}
	for _, file := range files {
		if err := addImports(all, file); err != nil {
			return nil, fmt.Errorf("cannot read the imports of %s: %w", filepath.Base(file), err)
		}
	}
	return all, nil
}

// addImports adds what the library of a file imports. A symbol without a version names no
// library: the stand-in of the first one defines it.
func addImports(all map[string]*standIn, file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	libraries = slices.DeleteFunc(libraries, func(name string) bool { return !isCUDA(strings.TrimPrefix(name, "lib")) })
	if len(libraries) == 0 {
		return nil
	}
	for _, name := range libraries {
		if all[name] == nil {
			all[name] = &standIn{map[string][]string{}}
		}
	}
	needs, err := f.DynamicVersionNeeds()
	if err != nil {
		return err
	}
	for _, need := range needs {
		for _, v := range need.Needs {
			if of := all[need.Name]; of != nil {
				of.require(v.Dep)
			}
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return err
	}
	for _, s := range symbols {
		switch of := all[s.Library]; {
		case of != nil:
			of.require(s.Version, s.Name)
		case s.Version == "" && isCUDA(s.Name):
			all[libraries[0]].require("", s.Name)
		}
	}
	return nil
}

// source returns the library in C, and the script for the linker with the versions of its
// symbols. A function that returns a text has an empty one; the others return the number of
// the error "no device".
func (s *standIn) source() (text, script string) {
	written := map[string]bool{}
	for _, version := range slices.Sorted(maps.Keys(s.versions)) {
		functions := slices.Compact(slices.Sorted(slices.Values(s.versions[version])))
		for _, name := range functions {
			switch {
			case written[name]:
			case strings.HasSuffix(name, "String") || strings.HasSuffix(name, "ErrorName") || name == "ncclGetLastError":
				text += "const char *" + name + "(void) { return \"\"; }\n"
			default:
				text += "int " + name + "(void) { return 100; }\n"
			}
			written[name] = true
		}
		if version != "" {
			script += version + " {"
			if len(functions) > 0 {
				script += " global: " + strings.Join(functions, "; ") + ";"
			}
			script += " };\n"
		}
	}
	return text, script
}

// replaceCUDA writes small libraries in the place of those of CUDA that the libraries in a
// folder need. PyTorch's package loads them also on a machine without a graphics processor,
// where it does not call them; they have over two gigabytes.
func (i *installer) replaceCUDA(dir, folder string) error {
	all, err := cudaStandIns(folder)
	if err != nil {
		return err
	}
	build := filepath.Join(dir, "cuda")
	if err := os.Mkdir(build, 0o750); err != nil {
		return fmt.Errorf("cannot create a folder: %w", err)
	}
	commands := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, script := all[name].source()
		for file, content := range map[string]string{name + ".c": text, name + ".map": script} {
			if err := os.WriteFile(filepath.Join(build, file), []byte(content), 0o600); err != nil {
				return fmt.Errorf("cannot write the source of a library: %w", err)
			}
		}
		commands += "cc -shared -fPIC -fno-builtin -w -Wl,-soname," + name
		if script != "" {
			commands += " -Wl,--version-script," + name + ".map"
		}
		commands += ` -o "$1/` + name + `" ` + name + ".c\n"
	}
	if err := i.run("replace the libraries of CUDA", build, "sh", "-ec", commands, "sh", folder); err != nil {
		return err
	}
	return os.RemoveAll(build)
}
