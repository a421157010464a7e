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
	{folder: "functions/worker/bootstrap", may: []string{"functions/worker", "shared/adapter", "shared/wire/contract"}},
	{folder: "functions/worker", may: []string{"functions/worker", "shared/sdk/go/worker", "shared/wire/contract", "shared/port", "shared/domain/fault", "shared/base/clock", "shared/base/limit", "shared/base/retry", "shared/adapter/r2"}},
	{folder: "functions/watch/bootstrap", may: []string{"functions/watch"}},
	{folder: "functions/watch/program", may: []string{"functions/watch", "shared/adapter/kubernetes", "shared/base/clock"}},
	{folder: "functions/watch", may: []string{"shared/wire/contract", "shared/port", "shared/base/clock", "shared/base/limit", "shared/base/retry", "shared/base/setting"}, never: []string{"k8s.io/"}},
	{folder: "functions/*/bootstrap", may: []string{"functions", "shared/domain/access", "shared/app", "shared/domain/series", "shared/wire/lambdakit", "shared/adapter", "shared/app/runs", "shared/port", "shared/domain/run", "shared/domain/spec", "shared/app/stream", "shared/wire/api", "shared/base/clock"}},
	{
		folder: "functions", may: []string{"shared/app", "shared/domain/fan", "shared/domain/sensor", "shared/wire/cloudevent", "shared/domain/activity", "shared/domain/artifact", "shared/domain/budget", "shared/domain/catalog", "shared/domain/inference", "shared/wire/openai", "shared/domain/webhook", "events", "shared/base/clock", "shared/domain/series", "shared/app/stream", "shared/domain/job", "shared/app/runs", "shared/domain/access", "shared/port", "shared/wire/api", "shared/wire/httpkit", "shared/wire/lambdakit", "shared/wire/contract", "shared/domain/fault", "shared/domain/label", "shared/base/limit", "shared/base/livelog", "shared/domain/platform", "shared/domain/run", "shared/domain/spec"},
		never: []string{"github.com/aws/", "github.com/superfly/", "modernc.org/"},
	},
	{folder: "events/eventtype", standard: true},
	{folder: "events", may: []string{"shared/domain/label"}, never: []string{"net/http", "os", "math/rand", "crypto/rand"}}, // consumers of events import it, so it has few dependencies
	{folder: "shared/base/retry", standard: true},
	{folder: "shared/base/batch", standard: true},
	{folder: "shared/domain/activity", may: []string{"events/eventtype", "shared/domain/budget", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/usage", standard: true},
	{folder: "shared/domain/budget", may: []string{"shared/domain/usage"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/sensor", may: []string{"shared/domain/fault", "shared/base/limit", "shared/base/retry"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/sensors", may: []string{"shared/base/batch", "shared/base/clock", "shared/domain/fault", "shared/domain/job", "shared/domain/sensor", "shared/port", "shared/domain/run"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/wire/cloudevent", may: []string{"shared/domain/fault", "shared/domain/sensor"}, never: []string{"github.com/aws/"}},
	{folder: "shared/domain/fan", standard: true, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/label", may: []string{"shared/base/limit"}, standard: true},
	{folder: "shared/domain/platform", may: []string{"shared/domain/fault", "shared/domain/label", "shared/base/limit", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/fleet", may: []string{"shared/domain/fault", "shared/domain/platform", "shared/base/retry", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/spec", may: []string{"shared/domain/fan", "shared/domain/fault", "shared/base/limit", "shared/base/retry"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/redelivery", may: []string{"shared/domain/fault", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/run", may: []string{"shared/domain/redelivery", "shared/domain/routing", "shared/domain/usage", "shared/domain/forecast", "shared/domain/fan", "shared/domain/sensor", "shared/domain/budget", "events/eventtype", "shared/domain/fault", "shared/domain/label", "shared/base/limit", "shared/base/retry", "shared/domain/platform", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/job", may: []string{"shared/domain/fan", "shared/domain/sensor", "shared/base/hook/guard", "shared/domain/run", "shared/domain/spec", "shared/domain/fault", "shared/domain/label", "shared/base/hash", "shared/base/limit", "shared/base/retry", "shared/domain/platform"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/webhook/examples", may: []string{"events"}},
	{folder: "shared/domain/webhook", may: []string{"events", "shared/base/retry"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/explain", may: []string{"shared/domain/routing", "shared/domain/usage", "shared/domain/fan", "shared/domain/job", "shared/domain/sensor", "shared/domain/fleet", "shared/domain/run", "shared/domain/spec", "shared/base/limit", "shared/domain/platform"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/forecast", standard: true},
	{folder: "shared/domain/routing", may: []string{"shared/domain/fault", "shared/domain/platform", "shared/domain/usage", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/rerun", may: []string{"shared/domain/fault", "shared/domain/job", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/artifact", may: []string{"shared/domain/fault"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/catalog", may: []string{"shared/domain/routing", "shared/domain/usage", "shared/domain/artifact", "shared/domain/budget", "shared/domain/fault", "shared/base/hash", "shared/base/limit", "shared/port", "shared/domain/platform", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/domain/inference", may: []string{"shared/domain/artifact", "shared/domain/platform", "shared/domain/fault", "shared/port"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/answer", may: []string{"shared/base/clock", "shared/domain/fault", "shared/domain/inference", "shared/port", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/balance", may: []string{"shared/base/clock", "shared/domain/fault", "shared/port", "shared/domain/fleet", "shared/domain/platform", "shared/domain/run", "shared/domain/spec", "shared/domain/series"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/wire/openai", may: []string{"shared/domain/fault", "shared/domain/inference", "shared/port", "shared/domain/run", "shared/domain/spec"}, never: []string{"net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}}, // net/http only for status codes
	{folder: "shared/domain/access", may: []string{"shared/domain/budget"}, standard: true},
	{folder: "shared/domain/trace", may: []string{"shared/domain/fault", "shared/domain/run", "shared/domain/spec"}},
	{folder: "shared/domain/series", may: []string{"shared/domain/run", "shared/domain/spec"}},
	{folder: "shared/base/private", standard: true},
	{folder: "shared/domain/fault"},
	{folder: "shared/base/clock", standard: true},
	{folder: "shared/base/decoded", standard: true},
	{folder: "shared/base/encoded", standard: true},
	{folder: "shared/base/hash", standard: true},
	{folder: "shared/base/limit", standard: true},
	{folder: "shared/base/hook/guard", may: []string{"shared/base/limit"}, never: []string{"net", "net/http", "os"}},
	{folder: "shared/base/hook", may: []string{"shared/base/clock", "shared/base/limit", "shared/base/retry"}, never: []string{"os", "github.com/aws/"}},
	{folder: "shared/base/redact", standard: true},
	{folder: "shared/app/stream", may: []string{"events", "shared/base/clock", "shared/domain/fault", "shared/port", "shared/domain/series"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/base/livelog", may: []string{"shared/base/limit"}, standard: true},
	{folder: "shared/app/setting", may: []string{"shared/domain/budget", "shared/domain/inference", "shared/domain/catalog", "shared/base/setting", "shared/app/runs", "shared/domain/run", "shared/domain/spec", "shared/domain/label", "shared/base/limit", "shared/base/hook/guard"}, standard: true},
	{folder: "shared/base/setting/otel", may: []string{"shared/base/setting", "shared/domain/trace"}, standard: true},
	{folder: "shared/base/setting/local", may: []string{"shared/base/setting"}, standard: true},
	{folder: "shared/base/setting", may: []string{"shared/base/limit"}, standard: true},
	{folder: "shared/app/token", may: []string{"shared/domain/access", "shared/base/clock", "shared/domain/fault", "shared/base/limit"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/wire/contract", standard: true},
	{folder: "shared/port", may: []string{"shared/domain/usage", "shared/domain/sensor", "shared/domain/budget", "events", "shared/domain/webhook", "shared/domain/job", "shared/domain/access", "shared/domain/fleet", "shared/domain/platform", "shared/domain/run", "shared/domain/spec", "shared/domain/fault", "shared/base/clock"}, standard: true},
	{folder: "shared/app/activity", may: []string{"events", "shared/base/clock", "shared/domain/activity", "shared/domain/budget", "shared/domain/fault", "shared/port"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/budgets", may: []string{"shared/domain/usage", "shared/app/change", "shared/domain/budget", "shared/base/clock", "shared/domain/fault", "shared/base/limit", "shared/port"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/capacity", may: []string{"shared/domain/forecast", "shared/base/clock", "shared/domain/explain", "shared/domain/fault", "shared/base/limit", "shared/port", "shared/base/redact", "shared/domain/fleet", "shared/domain/run", "shared/domain/spec", "shared/domain/series", "shared/domain/platform"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/change", may: []string{"events", "shared/domain/fault", "shared/base/limit", "shared/port", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/artifacts", may: []string{"shared/app/change", "shared/domain/artifact", "shared/domain/catalog", "shared/base/clock", "shared/domain/fault", "shared/domain/job", "shared/base/limit", "shared/port", "shared/domain/run", "shared/domain/spec", "shared/domain/platform"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/logs", may: []string{"events", "shared/base/clock", "shared/domain/fault", "shared/base/limit", "shared/base/livelog", "shared/port", "shared/base/redact", "shared/domain/run", "shared/domain/spec", "shared/app/token"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/crew", may: []string{"shared/base/clock", "shared/domain/platform", "shared/domain/run", "shared/port"}},
	{folder: "shared/app/reception", may: []string{"shared/app/about", "shared/app/grants", "shared/base/clock", "shared/domain/fault", "shared/domain/run", "shared/port"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/watch", may: []string{"shared/domain/run"}},
	{folder: "shared/app/host", may: []string{"events", "shared/domain/access", "shared/domain/fault", "shared/domain/job", "shared/base/limit", "shared/port", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/about", may: []string{"shared/port", "shared/domain/run", "shared/domain/spec", "shared/app/token"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/inferences", may: []string{"shared/domain/usage", "shared/domain/access", "shared/domain/routing", "shared/domain/label", "shared/app/answer", "shared/app/about", "shared/app/capacity", "shared/app/change", "shared/domain/artifact", "shared/app/balance", "shared/domain/budget", "shared/domain/catalog", "shared/base/clock", "shared/domain/fault", "shared/domain/inference", "shared/base/limit", "shared/port", "shared/domain/platform", "shared/domain/run", "shared/domain/spec", "shared/domain/series", "shared/domain/trace"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/jobs", may: []string{"shared/app/items", "shared/domain/fan", "shared/domain/sensor", "shared/domain/access", "shared/app/capacity", "shared/app/change", "shared/app/host", "shared/base/clock", "shared/domain/explain", "shared/domain/fault", "shared/base/hook/guard", "shared/domain/job", "shared/domain/label", "shared/base/limit", "shared/port", "shared/domain/platform", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/downloads", may: []string{"shared/domain/fault", "shared/port", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/grants", may: []string{"shared/domain/access", "shared/base/clock", "shared/domain/fault", "shared/base/limit", "shared/port", "shared/domain/run", "shared/domain/spec", "shared/app/token", "shared/base/redact"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/items", may: []string{"shared/base/clock", "shared/domain/fan", "shared/port"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/redelivery", may: []string{"shared/domain/fault", "shared/domain/run", "shared/domain/spec", "shared/port"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/children", may: []string{"shared/base/batch", "shared/app/items", "shared/base/clock", "shared/domain/fault", "shared/domain/fan", "shared/port", "shared/domain/run"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/hooks", may: []string{"shared/base/limit", "shared/app/about", "shared/domain/fault", "shared/base/hook", "shared/port", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/warm", may: []string{"shared/app/about", "shared/app/capacity", "shared/app/crew", "shared/base/clock", "shared/domain/fault", "shared/port", "shared/domain/fleet", "shared/domain/platform", "shared/domain/run", "shared/domain/spec"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/prompts", may: []string{"shared/base/clock", "shared/base/limit", "shared/domain/fault", "shared/domain/inference", "shared/domain/run", "shared/domain/spec", "shared/port"}, never: []string{"net/http", "net", "os", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "github.com/aws/"}},
	{folder: "shared/app/pools", may: []string{"shared/domain/access", "shared/domain/budget", "shared/domain/usage", "shared/app/about", "shared/app/capacity", "shared/app/change", "shared/app/crew", "shared/app/host", "shared/app/balance", "shared/domain/catalog", "shared/base/clock", "shared/domain/explain", "shared/domain/fault", "shared/base/hook/guard", "shared/domain/job", "shared/base/limit", "shared/port", "shared/domain/fleet", "shared/domain/platform", "shared/domain/run", "shared/domain/spec", "shared/domain/series"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/app/delivery", may: []string{"events", "shared/app/change", "shared/base/clock", "shared/domain/fault", "shared/base/hook", "shared/base/limit", "shared/port", "shared/domain/run", "shared/domain/spec", "shared/domain/series", "shared/domain/webhook"}, never: []string{"net/http", "net", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{
		folder: "shared/app/runs", may: []string{"shared/domain/forecast", "shared/domain/fan", "shared/app/items", "shared/app/answer", "shared/app/balance", "shared/app/about", "shared/app/capacity", "shared/app/change", "shared/app/crew", "shared/app/grants", "shared/app/host", "shared/app/reception", "shared/domain/trace", "shared/domain/budget", "shared/domain/artifact", "shared/domain/catalog", "shared/domain/inference", "events", "shared/domain/series", "shared/domain/webhook", "shared/domain/explain", "shared/domain/rerun", "shared/base/hook", "shared/domain/job", "shared/port", "shared/domain/fleet", "shared/domain/platform", "shared/domain/run", "shared/domain/spec", "shared/domain/fault", "shared/base/clock", "shared/domain/label", "shared/base/limit", "shared/base/livelog", "shared/base/redact", "shared/app/token", "shared/domain/access", "shared/app/watch"},
		never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"},
	},
	{folder: "shared/app", may: []string{"shared/app/balance", "shared/base/clock", "shared/app/runs", "shared/port", "shared/domain/run", "shared/domain/spec", "shared/domain/series", "shared/domain/platform"}, never: []string{"net/http", "os", "database/sql", "github.com/aws/", "github.com/superfly/"}},
	{folder: "shared/wire/api", may: []string{"shared/app/budgets", "shared/domain/usage", "shared/wire/openai", "shared/domain/forecast", "shared/domain/label", "shared/domain/fan", "shared/app/children", "shared/app/sensors", "shared/domain/sensor", "shared/app/delivery", "shared/app/grants", "shared/app/hooks", "shared/app/inferences", "shared/app/jobs", "shared/app/pools", "shared/app/balance", "shared/domain/artifact", "shared/domain/budget", "shared/domain/catalog", "shared/domain/inference", "shared/base/livelog", "shared/domain/webhook", "events", "shared/domain/explain", "shared/domain/job", "shared/wire/contract", "shared/app/runs", "shared/port", "shared/domain/fleet", "shared/domain/platform", "shared/domain/run", "shared/domain/spec", "shared/domain/fault", "shared/base/limit", "shared/domain/trace"}, standard: true},
	{folder: "shared/wire/httpkit", may: []string{"shared/base/encoded", "shared/base/livelog", "shared/app/change", "events", "shared/domain/budget", "shared/domain/job", "shared/domain/access", "shared/wire/httpkit", "shared/wire/api", "shared/app/runs", "shared/port", "shared/base/clock", "shared/wire/contract", "shared/domain/fault", "shared/domain/label", "shared/base/limit", "shared/domain/run", "shared/domain/spec", "shared/domain/trace"}, never: []string{"github.com/aws/"}},
	{folder: "shared/wire/lambdakit/process", may: []string{"shared/app/setting", "shared/base/setting", "shared/wire/lambdakit", "shared/wire/httpkit", "shared/app/runs", "shared/port", "shared/base/clock"}},
	{folder: "shared/wire/lambdakit/deployed", may: []string{"shared/wire/api", "shared/app", "shared/app/stream", "shared/base/hook", "shared/domain/access", "shared/wire/lambdakit", "shared/wire/httpkit", "shared/app/runs", "shared/port", "shared/domain/platform", "shared/domain/run", "shared/domain/spec", "shared/base/clock", "shared/adapter", "shared/base/setting"}}, // only bootstraps import it
	{folder: "shared/wire/lambdakit/gateway", may: []string{"shared/wire/httpkit", "shared/domain/fault"}},
	{folder: "shared/wire/lambdakit/metric", may: []string{"shared/domain/series"}},
	{
		folder: "shared/wire/lambdakit", may: []string{"shared/domain/series", "shared/app/runs", "shared/port", "shared/wire/contract", "shared/domain/fault", "shared/domain/run", "shared/domain/spec"},
		never: []string{"github.com/aws/"}, // every function links it
	},
	{folder: "shared/sdk/go/worker/supervisor", may: []string{"shared/base/clock", "shared/base/limit", "shared/base/private", "shared/sdk/go/worker"}}, // with the system calls of macOS
	{folder: "shared/sdk/go/worker", may: []string{"shared/wire/contract", "shared/base/limit", "shared/base/clock", "shared/base/private", "shared/base/redact", "shared/base/retry"}, standard: true},
	{folder: "shared/sdk/go/generate", may: []string{"shared/wire/contract"}},
	{folder: "shared/sdk/go", may: []string{"shared/base/clock"}, standard: true}, // programs of users link it
	{folder: "shared/archtest", may: []string{"shared/domain/series", "shared/domain/run", "shared/domain/spec", "shared/base/setting", "statemachines"}},
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
	for _, folder := range []string{"functions/steps", "functions/steps/bootstrap", "shared/domain/run", "shared/adapter/dynamo", "shared/sdk/go/worker", "local/sortie", "local/twin/stack", "infra", "infra/stack"} {
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
