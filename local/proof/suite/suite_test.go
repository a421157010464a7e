package suite_test

import (
	"context"
	"crypto/x509"
	"flag"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite"
	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

func TestMain(m *testing.M) {
	stacktest.AtOnce(16)
	environ := os.Environ()
	stacktest.Main(m, os.Args, environ, suite.ProgramsOf(environ))
}

var examples = flag.String("examples", "", "folder into which examples of events are written that have another form than the published ones")

const clientToken = "token-of-the-suite"

// others are the additional clients of the local stack.
var others = clients.Others{Stranger: "token-of-a-stranger", Reader: "token-of-a-reader"}

// TestLocalStack runs the suite against a stack in this process.
func TestLocalStack(t *testing.T) {
	t.Parallel()
	stage, log := scripts.In(t.TempDir()), &stacktest.Log{}
	settings := suite.Settings()
	maps.Copy(settings, map[string]string{"AUTH_TOKEN": "another-token-of-the-suite," + clientToken})
	data := filepath.Join(t.TempDir(), "data")
	if err := private.Folder(data); err != nil {
		t.Fatal(err)
	}
	err := tokenfile.Update(filepath.Join(data, stack.TokensFile), func([]access.Token) ([]access.Token, error) { return others.Records(), nil })
	if err != nil {
		t.Fatal(err)
	}
	folder := secretfile.Folder(filepath.Join(data, stack.SecretsFolder))
	for name, value := range clients.Secrets() {
		if err := folder.Put(access.Default, name, value); err != nil {
			t.Fatal(err)
		}
	}
	config, err := stacktest.Config{Data: data, Settings: settings}.Stack(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := outside.Certificate(filepath.Join(t.TempDir(), "trusted.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AddCert(certificate.Leaf)
	config.Images = suite.Images(config.Executable[0])
	config.Images[config.Settings.Service.Image] = stage.Image(config.Executable[0])
	s, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("cannot stop the stack: %v", err)
		}
		if t.Failed() {
			t.Logf("the stack's log:\n%s", log)
		}
		if err := log.Secrets(slices.Collect(maps.Values(clients.Secrets()))...); err != nil {
			t.Error(err)
		}
	})
	machines, buckets, err := outside.LocalStack(s.Addresses())
	if err != nil {
		t.Fatal(err)
	}
	suite.Run(t, suite.Target{
		Name: "the local stack", URL: s.Addresses().URL, Token: s.Token(), Others: others,
		Machines: machines, Buckets: buckets, Scripts: stage,
		MaxMachines: config.Settings.Service.MaxMachines, Certificate: certificate, Examples: *examples, Lacks: lacks(t),
	})
}

// lacks returns the missing capabilities of the local stack on this host: Bash if bash or curl
// is missing.
func lacks(t *testing.T) map[suite.Capability]string {
	t.Helper()
	lacks := map[suite.Capability]string{suite.NoHostPrograms: "it is the system that runs them"}
	suite.LookForBash(t, os.Getenv("CI") != "", lacks)
	return lacks
}
