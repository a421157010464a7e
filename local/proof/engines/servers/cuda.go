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

// vllmStandIns is the version of the libraries that replaceCUDA writes. It is part of the cache
// key, so that a new version replaces an installation.
const vllmStandIns = "1"

// standIn is a library that replaces one of CUDA. It has the functions that other libraries
// import.
type standIn struct {
	// versions maps each symbol version to its functions. The key "" has functions without a
	// version.
	versions map[string][]string
}

// require adds a symbol version and functions. The library must have the version even if it has
// no function of it.
func (s *standIn) require(version string, functions ...string) {
	s.versions[version] = append(s.versions[version], functions...)
}

// isCUDA reports whether the name of a function, or of a library without "lib", is one of CUDA.
func isCUDA(name string) bool {
	return slices.ContainsFunc([]string{"cu", "nv", "nccl"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// cudaStandIns returns a stand-in for each CUDA library that the libraries in the folder need
// and the folder does not have. Keys are library names.
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

// addImports adds the imports of the library in file. A symbol without a version names no
// library, so the first stand-in defines it.
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

// source returns the C source of the library and the linker's version script. A function that
// returns a text returns an empty one. The others return the error number of "no device".
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

// replaceCUDA writes small stand-ins for the CUDA libraries that the libraries in a folder
// need. PyTorch loads these even on a machine without a GPU, where it never calls them. The
// real ones need over two gigabytes.
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
