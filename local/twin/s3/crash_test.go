package s3_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the ETag of S3 is an MD5
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/local/twin/s3"
)

// childDir is the variable that makes this binary serve the directory until it is killed.
const childDir = "SORTIE_TEST_S3_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	// The HTTP library keeps two goroutines that end ten seconds after their
	// server, or with the process.
	goleak.VerifyTestMain(
		m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	)
}

func child(dir string) int {
	server, err := s3.Start(context.Background(), config(dir))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(server.URL())
	select {}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKillLeavesWholeObjects kills a serving process during uploads. Every acknowledged object
// exists, and no object is incomplete.
func TestKillLeavesWholeObjects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[string]string{}
	for life := range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(out)
		url, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("the server said %q, %v", url, err)
		}
		c := dial(t, strings.TrimSpace(url), owner)
		enough, stopped := make(chan struct{}), make(chan error)
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("exports/t%d/%d", life, n%20) // some are overwritten
				body := bytes.Repeat([]byte(fmt.Sprintf("%d-%d ", life, n)), 1+n*1000)
				_, err := c.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String("uploads"), Key: &key, Body: bytes.NewReader(body)})
				if err != nil {
					// Not answered: the object is complete or absent.
					acknowledged[key] = ""
					stopped <- err
					return
				}
				acknowledged[key] = sum(body)
				if n == 30 {
					close(enough)
				}
			}
		}()
		<-enough
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-stopped
		rest, err := io.ReadAll(said)
		if err != nil || len(rest) > 0 {
			t.Errorf("unexpected standard output %q, %v", rest, err)
		}
		_ = cmd.Wait()
	}
	c := dial(t, start(t, config(dir)).URL(), owner)
	listed, err := c.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String("uploads")})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range listed.Contents {
		body := c.get("uploads", *object.Key)
		if got := sum([]byte(body)); `"`+got+`"` != *object.ETag {
			t.Errorf("%s is incomplete", *object.Key)
		} else if want := acknowledged[*object.Key]; want != "" && got != want {
			t.Errorf("%s differs from what was acknowledged", *object.Key)
		}
		delete(acknowledged, *object.Key)
	}
	for key, want := range acknowledged {
		if want != "" {
			t.Errorf("%s was acknowledged and is lost", key)
		}
	}
	if n := len(blobs(t, dir)); n != len(listed.Contents) {
		t.Errorf("got %d objects and %d blobs", len(listed.Contents), n)
	}
}

func sum(body []byte) string {
	hash := md5.Sum(body) //nolint:gosec // see the import
	return hex.EncodeToString(hash[:])
}
