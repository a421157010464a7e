package servers

import (
	"strings"
	"testing"
)

func TestStandInHasTheVersionsOfItsFunctions(t *testing.T) {
	t.Parallel()
	s := &standIn{map[string][]string{}}
	s.require("libcudart.so.13", "cudaMalloc", "cudaGetErrorString", "cudaMalloc")
	s.require("libcudart.so.12")
	s.require("", "ncclSend")
	text, script := s.source()
	wantText := "int ncclSend(void) { return 100; }\nconst char *cudaGetErrorString(void) { return \"\"; }\nint cudaMalloc(void) { return 100; }\n"
	if text != wantText {
		t.Errorf("got the source\n%s\nwant\n%s", text, wantText)
	}
	if want := "libcudart.so.12 { };\nlibcudart.so.13 { global: cudaGetErrorString; cudaMalloc; };\n"; script != want {
		t.Errorf("got the versions\n%s\nwant\n%s", script, want)
	}
}

func TestFolderWithoutLibrariesIsAnError(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := cudaStandIns(folder); err == nil || !strings.Contains(err.Error(), "missing libraries in "+folder) {
		t.Errorf("got %v, want the folder without libraries", err)
	}
}
