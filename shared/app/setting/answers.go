package service

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/inference"
)

// mostAnswerDays is the maximum of a number of days.
const mostAnswerDays = 3650

// parseAnswerDays parses a list such as "30,acme=7": days, and those of single tenants.
func parseAnswerDays(text string) (r inference.Retention, err error) {
	list, err := setting.ParseList(text)
	if err != nil {
		return r, err
	}
	for _, each := range list {
		tenant, days, own := strings.Cut(each, "=")
		if !own {
			days = each
		}
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > mostAnswerDays || own && tenant == "" {
			return r, fmt.Errorf("malformed entry %q, want days from 0 to %d, or a tenant with its days such as acme=7", each, mostAnswerDays)
		}
		_, known := r.Tenants[tenant]
		switch {
		case own && known, !own && r.Default != nil:
			return r, fmt.Errorf("a second entry %q, want one of all tenants and one of each", each)
		case !own:
			r.Default = &n
		case r.Tenants == nil:
			r.Tenants = map[string]int{tenant: n}
		default:
			r.Tenants[tenant] = n
		}
	}
	return r, nil
}
