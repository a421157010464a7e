package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// importRule says what the files of a folder may import.
type importRule struct {
	folder string
	// may lists the folders of the repository that can be imported, with their subfolders.
	may []string
	// never lists import paths outside the repository that are forbidden. A path that ends
	// with a slash forbids all paths below it.
	never []string
	// standard allows only the standard library outside the repository.
	standard bool
}

// importRules is the table of import rules. The first row that matches a folder applies, so
// specific folders come first.
var importRules = []importRule{
	{folder: "functions/worker/bootstrap", may: []string{"functions/worker", "shared/adapter", "shared/contract"}},
	{folder: "functions/worker/program", may: []string{"functions/worker", "shared/adapter/r2", "shared/clock", "shared/contract"}},
	{folder: "functions/worker", may: []string{"functions/worker", "shared/worker", "shared/contract", "shared/port", "shared/fault", "shared/clock", "shared/limit", "shared/retry", "shared/adapter/r2"}},
	{folder: "functions/watch/bootstrap", may: []string{"functions/watch"}},
	{folder: "functions/watch/program", may: []string{"functions/watch", "shared/adapter/kubernetes", "shared/clock"}},
	{folder: "functions/watch", may: []string{"shared/contract", "shared/port", "shared/clock", "shared/limit", "shared/retry", "shared/setting"}, never: []string{"k8s.io/"}},
	{folder: "functions/*/bootstrap", may: []string{"functions", "shared/access", "shared/app", "shared/series", "shared/lambdakit", "shared/adapter", "shared/orchestrator", "shared/port", "shared/run", "shared/stream", "shared/api", "shared/clock"}},
	{
		folder: "functions", may: []string{"shared/app", "shared/artifact", "shared/budget", "shared/catalog", "shared/inference", "shared/openai", "shared/webhook", "events", "shared/clock", "shared/series", "shared/stream", "shared/job", "shared/orchestrator", "shared/access", "shared/port", "shared/api", "shared/httpkit", "shared/lambdakit", "shared/contract", "shared/fault", "shared/label", "shared/limit", "shared/livelog", "shared/platform", "shared/run"},
		never: []string{"github.com/aws/", "github.com/superfly/", "modernc.org/"},
	},
	{folder: "events/eventtype", standard: true},
	{folder: "events", never: []string{"net/http", "os", "math/rand", "crypto/rand"}}, // consumers of events import it, so it has few dependencies
	{folder: "shared/retry", standard: true},
	{folder: "shared/budget", standard: true},
	{folder: "shared/label", may: []string{"shared/limit"}, standard: true},
	{folder: "shared/platform", may: []string{"shared/fault", "shared/label", "shared/limit"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/fleet", may: []string{"shared/fault", "shared/platform", "shared/retry", "shared/run"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/run", may: []string{"shared/budget", "events/eventtype", "shared/fault", "shared/label", "shared/limit", "shared/retry", "shared/platform"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/job", may: []string{"shared/hook/guard", "shared/run", "shared/fault", "shared/label", "shared/limit", "shared/retry"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/webhook/examples", may: []string{"events"}},
	{folder: "shared/webhook", may: []string{"events", "shared/retry"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/explain", may: []string{"shared/job", "shared/fleet", "shared/run", "shared/limit"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/artifact", may: []string{"shared/fault"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/catalog", may: []string{"shared/artifact", "shared/budget", "shared/fault", "shared/limit", "shared/port", "shared/run"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/inference", may: []string{"shared/fault", "shared/port"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/answer", may: []string{"shared/clock", "shared/fault", "shared/inference", "shared/port", "shared/run"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/balance", may: []string{"shared/clock", "shared/fault", "shared/port", "shared/fleet", "shared/platform", "shared/run", "shared/series"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/openai", may: []string{"shared/fault", "shared/inference", "shared/port", "shared/run"}, never: []string{"net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}}, // net/http only for status codes
	{folder: "shared/access", standard: true},
	{folder: "shared/trace", may: []string{"shared/fault", "shared/run"}},
	{folder: "shared/series", may: []string{"shared/run"}},
	{folder: "shared/private", standard: true},
	{folder: "shared/fault"},
	{folder: "shared/clock", standard: true},
	{folder: "shared/decoded", standard: true},
	{folder: "shared/encoded", standard: true},
	{folder: "shared/limit", standard: true},
	{folder: "shared/hook/guard", may: []string{"shared/limit"}, never: []string{"net", "net/http", "os"}},
	{folder: "shared/hook", may: []string{"shared/clock", "shared/limit", "shared/retry"}, never: []string{"os", "github.com/aws/"}},
	{folder: "shared/redact", standard: true},
	{folder: "shared/stream", may: []string{"events", "shared/clock", "shared/fault", "shared/port", "shared/series"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/livelog", may: []string{"shared/limit"}, standard: true},
	{folder: "shared/setting/service", may: []string{"shared/budget", "shared/catalog", "shared/setting", "shared/orchestrator", "shared/run", "shared/label", "shared/limit", "shared/hook/guard"}, standard: true},
	{folder: "shared/setting/otel", may: []string{"shared/setting", "shared/trace"}, standard: true},
	{folder: "shared/setting/kubernetes", may: []string{"shared/setting"}, standard: true},
	{folder: "shared/setting", may: []string{"shared/limit"}, standard: true},
	{folder: "shared/token", may: []string{"shared/access", "shared/clock", "shared/fault", "shared/limit"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/contract", standard: true},
	{folder: "shared/port", may: []string{"shared/budget", "events", "shared/webhook", "shared/job", "shared/access", "shared/fleet", "shared/platform", "shared/run", "shared/fault", "shared/clock"}, standard: true},
	{folder: "shared/app/budgets", may: []string{"shared/app/change", "shared/budget", "shared/clock", "shared/fault", "shared/limit", "shared/port"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/capacity", may: []string{"shared/clock", "shared/explain", "shared/fault", "shared/limit", "shared/port", "shared/redact", "shared/fleet", "shared/run", "shared/series"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/change", may: []string{"events", "shared/fault", "shared/limit", "shared/port", "shared/run"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/artifacts", may: []string{"shared/app/change", "shared/artifact", "shared/catalog", "shared/clock", "shared/fault", "shared/job", "shared/limit", "shared/port", "shared/run"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/logs", may: []string{"events", "shared/clock", "shared/fault", "shared/limit", "shared/livelog", "shared/port", "shared/redact", "shared/run", "shared/token"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/crew"},
	{folder: "shared/app/host", may: []string{"events", "shared/access", "shared/fault", "shared/job", "shared/limit", "shared/port", "shared/run"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/about", may: []string{"shared/port", "shared/run", "shared/token"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/inferences", may: []string{"shared/answer", "shared/app/about", "shared/app/capacity", "shared/app/change", "shared/artifact", "shared/balance", "shared/budget", "shared/catalog", "shared/clock", "shared/fault", "shared/inference", "shared/limit", "shared/port", "shared/platform", "shared/run", "shared/series", "shared/trace"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/jobs", may: []string{"shared/access", "shared/app/capacity", "shared/app/change", "shared/app/host", "shared/clock", "shared/explain", "shared/fault", "shared/hook/guard", "shared/job", "shared/label", "shared/limit", "shared/port", "shared/platform", "shared/run"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/downloads", may: []string{"shared/fault", "shared/port", "shared/run"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/grants", may: []string{"shared/access", "shared/clock", "shared/fault", "shared/limit", "shared/port", "shared/run", "shared/token"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/hooks", may: []string{"shared/app/about", "shared/fault", "shared/hook", "shared/port", "shared/run"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/warm", may: []string{"shared/app/about", "shared/app/capacity", "shared/app/crew", "shared/clock", "shared/fault", "shared/port", "shared/fleet", "shared/platform", "shared/run"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/pools", may: []string{"shared/access", "shared/app/about", "shared/app/capacity", "shared/app/change", "shared/app/crew", "shared/app/host", "shared/balance", "shared/catalog", "shared/clock", "shared/explain", "shared/fault", "shared/hook/guard", "shared/job", "shared/limit", "shared/port", "shared/fleet", "shared/platform", "shared/run", "shared/series"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/delivery", may: []string{"events", "shared/app/change", "shared/clock", "shared/fault", "shared/hook", "shared/limit", "shared/port", "shared/run", "shared/series", "shared/webhook"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app", may: []string{"shared/balance", "shared/clock", "shared/orchestrator", "shared/port", "shared/run", "shared/series"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{
		folder: "shared/orchestrator", may: []string{"shared/answer", "shared/balance", "shared/app/about", "shared/app/capacity", "shared/app/change", "shared/app/crew", "shared/app/grants", "shared/app/host", "shared/trace", "shared/budget", "shared/artifact", "shared/catalog", "shared/inference", "events", "shared/series", "shared/webhook", "shared/explain", "shared/hook", "shared/job", "shared/port", "shared/fleet", "shared/platform", "shared/run", "shared/fault", "shared/clock", "shared/label", "shared/limit", "shared/livelog", "shared/redact", "shared/token", "shared/access"},
		never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"},
	},
	{folder: "shared/api", may: []string{"shared/app/delivery", "shared/app/grants", "shared/app/hooks", "shared/app/inferences", "shared/app/jobs", "shared/app/pools", "shared/balance", "shared/artifact", "shared/budget", "shared/catalog", "shared/inference", "shared/livelog", "shared/webhook", "events", "shared/explain", "shared/job", "shared/contract", "shared/orchestrator", "shared/port", "shared/fleet", "shared/platform", "shared/run", "shared/fault", "shared/limit", "shared/trace"}, standard: true},
	{folder: "shared/httpkit", may: []string{"shared/livelog", "shared/app/change", "events", "shared/budget", "shared/job", "shared/access", "shared/httpkit", "shared/api", "shared/orchestrator", "shared/port", "shared/clock", "shared/contract", "shared/fault", "shared/label", "shared/limit", "shared/run", "shared/trace"}, never: []string{"github.com/aws/"}},
	{folder: "shared/lambdakit/process", may: []string{"shared/setting", "shared/lambdakit", "shared/httpkit", "shared/orchestrator", "shared/port", "shared/clock"}},
	{folder: "shared/lambdakit/deployed", may: []string{"shared/api", "shared/app", "shared/stream", "shared/hook", "shared/access", "shared/lambdakit", "shared/httpkit", "shared/orchestrator", "shared/port", "shared/platform", "shared/run", "shared/clock", "shared/adapter", "shared/setting"}}, // only bootstraps import it
	{folder: "shared/lambdakit/gateway", may: []string{"shared/httpkit", "shared/fault"}},
	{folder: "shared/lambdakit/metric", may: []string{"shared/series"}},
	{
		folder: "shared/lambdakit", may: []string{"shared/series", "shared/orchestrator", "shared/port", "shared/contract", "shared/fault", "shared/run"},
		never: []string{"github.com/aws/"}, // every function links it
	},
	{folder: "shared/worker/supervisor", may: []string{"shared/clock", "shared/limit", "shared/private", "shared/worker"}}, // with the system calls of macOS
	{folder: "shared/worker", may: []string{"shared/contract", "shared/limit", "shared/clock", "shared/private", "shared/redact", "shared/retry"}, standard: true},
	{folder: "shared/sdk/go/generate", may: []string{"shared/contract"}},
	{folder: "shared/sdk/go", may: []string{"shared/clock"}, standard: true}, // programs of users link it
	{folder: "shared/archtest", may: []string{"shared/series", "shared/run", "shared/setting", "statemachines"}},
	{folder: "statemachines"},
	{folder: ".", standard: true},
}

func TestWhoMayImportWhom(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.Test() {
			continue
		}
		for _, imported := range s.Imports() {
			if why := forbidden(s.Folder(), imported); why != "" {
				t.Errorf("%s imports %s: %s", s.Path, imported, why)
			}
		}
	}
}

func forbidden(folder, imported string) string {
	ours := inside(imported, "functions") || inside(imported, "shared") || inside(imported, "local") ||
		inside(imported, "infra") || inside(imported, "statemachines") || inside(imported, "events")
	if inside(imported, "local/proof") && !inside(folder, "local/proof") {
		return "only tests and local/proof import local/proof"
	}
	if inside(folder, "local") || inside(folder, "infra") {
		return ""
	}
	if inside(imported, "local") || inside(imported, "infra") || strings.Contains(imported, "aws-cdk-go") {
		return "nothing that is deployed imports local or the CDK"
	}
	if inside(folder, "shared/adapter") {
		own := strings.Join(strings.SplitN(folder, "/", 4)[:3], "/")
		if inside(imported, "shared/adapter") && !inside(imported, own) {
			return "an adapter never imports another"
		}
		return ""
	}
	for _, r := range importRules {
		if matches, err := path.Match(r.folder, folder); err != nil || !matches && !inside(folder, r.folder) {
			continue
		}
		if ours && !slices.ContainsFunc(append(r.may, r.folder), func(open string) bool { return inside(imported, open) }) {
			return r.folder + " may not import it"
		}
		if domain, _, _ := strings.Cut(imported, "/"); r.standard && strings.Contains(domain, ".") {
			return r.folder + " may import only the standard library"
		}
		if slices.ContainsFunc(r.never, func(closed string) bool {
			return imported == closed || strings.HasSuffix(closed, "/") && strings.HasPrefix(imported, closed)
		}) {
			return r.folder + " must never import it"
		}
		return ""
	}
	return folder + " has no row in the import table"
}

func TestProofIsNotPartOfTheProduct(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"functions/steps", "functions/steps/bootstrap", "shared/run", "shared/adapter/dynamo", "shared/worker", "local/sortie", "local/twin/stack", "infra", "infra/stack"} {
		for _, kit := range []string{"local/proof/port/fake", "local/proof/api/apitest", "local/proof/localstack/cache"} {
			if forbidden(folder, kit) == "" {
				t.Errorf("%s imports %s: got no complaint", folder, kit)
			}
		}
	}
	for folder, imported := range map[string]string{"local/proof/bench": "local/proof/port/fake", "local/sortie/command": "local/sortie/conformance"} {
		if why := forbidden(folder, imported); why != "" {
			t.Errorf("%s imports %s: got %q, want it permitted", folder, imported, why)
		}
	}
}

func inside(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}
