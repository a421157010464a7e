// Package cost computes what AWS bills for a deployed Sortie.
//
//	functions ──► Proxy ──► LocalStack      requests, write and read units
//	                          │
//	      histories, logs ◄───┘             transitions, Lambda's time
//
// Usage counts the billed units of calls. Prices are AWS's prices with their date. A Bill is
// the product, item by item. "make cost" counts on the stack that is deployed in LocalStack and
// writes testdata/measured.json. README.md is generated from that file, and a test compares the
// file with the goals.
//
// Costs that cannot be measured locally are assumed and listed in Assumptions. Free tiers,
// discounts, taxes and the price of the workers' machines are not included.
package cost
