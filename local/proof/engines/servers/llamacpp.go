package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// llamaSettings are the build settings of llama-server. They leave out everything that needs a
// network, another library, or instructions that a CPU may lack. The user interface is off
// because the build would download it. Number and commit are set because the build would read
// them from a Git repository in a parent folder. The C++ parts are compiled with few
// optimizations, which halves the build time.
var llamaSettings = []string{
	"-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
	"-DBUILD_SHARED_LIBS=OFF", "-DGGML_NATIVE=OFF", "-DGGML_OPENMP=OFF", "-DGGML_CCACHE=OFF", "-DGGML_LLAMAFILE=OFF", "-DGGML_METAL=OFF",
	"-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_APP=OFF",
	"-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_BUILD_NUMBER=1", "-DLLAMA_BUILD_COMMIT=source",
}

// llamacpp builds llama-server.
func (i *installer) llamacpp() (string, error) {
	return i.part("llamacpp", llamaSettings, []string{"llamacpp.lock", "backend.lock"}, func(dir string) error {
		err := programs(map[string]string{
			"cmake": "apt install cmake, or brew install cmake", "make": "apt install make, or xcode-select --install",
			"c++": "a C++ compiler: apt install g++, or xcode-select --install", "tar": "apt install tar",
		})
		if err != nil {
			return err
		}
		python, err := i.venv(dir, "3.13")
		if err != nil {
			return err
		}
		source, build := filepath.Join(dir, "source"), filepath.Join(dir, "build")
		if err := os.Mkdir(source, 0o750); err != nil {
			return fmt.Errorf("cannot create a folder: %w", err)
		}
		for _, each := range []struct {
			what, program string
			args          []string
		}{
			{"install the backend of the source package", python, []string{"-m", "pip", "install", "--quiet", "--retries", "10", "--no-deps", "--require-hashes", "--requirement", "backend.lock"}},
			{"fetch llama.cpp", python, []string{
				"-m", "pip", "download", "--quiet", "--retries", "10", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--require-hashes",
				"--requirement", "llamacpp.lock", "--dest", "download",
			}},
			{"unpack llama.cpp", "sh", []string{"-c", "tar -xzf download/*.tar.gz -C source --strip-components=1"}},
			{"configure llama.cpp", "cmake", append([]string{"-G", "Unix Makefiles", "-S", filepath.Join(source, "vendor", "llama.cpp"), "-B", build}, llamaSettings...)},
			{"build llama-server", "cmake", []string{"--build", build, "--target", "llama-server", "--parallel", strconv.Itoa(runtime.NumCPU())}},
		} {
			if err := i.run(each.what, dir, each.program, each.args...); err != nil {
				return err
			}
		}
		if err := os.Rename(filepath.Join(build, "bin", "llama-server"), filepath.Join(dir, "llama-server")); err != nil {
			return fmt.Errorf("cannot keep llama-server: %w", err)
		}
		for _, rest := range []string{source, build, filepath.Join(dir, "download"), filepath.Join(dir, "python")} {
			if err := os.RemoveAll(rest); err != nil {
				return fmt.Errorf("cannot remove the files of the build: %w", err)
			}
		}
		return nil
	})
}
