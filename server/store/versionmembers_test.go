package store_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/members"
	"ordain.dev/ordain/server/store/storetest"
)

// The pages of a version's resources that are put together in memory are those that the database lists, whatever is
// asked; and the counts are those of the rows.
func TestVersionMembersAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := get(store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
	t.Cleanup(s.Close)
	for name, words := range map[string][]string{
		"plain":       {"a", "B", "b_c", "B-c", "c d", "", "x10", "x9"},
		"of any kind": {"a", "B", "é", "Éa", "ß", "z", "Z%_", "ſ"},
	} {
		env, numbers, ids := versionsOf(t, s, url, words)
		answered := 0
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				number := rapid.SampledFrom(numbers).Draw(rt, "version")
				q := memberQuery(rt, ids, words)
				v := get(s.VersionNow(t.Context(), env, number))(t)
				if store.AnsweredInMemory(v, q) {
					answered++
				}
				got, err1 := v.Page(t.Context(), q)
				want, err2 := store.ListedByDatabase(s, t.Context(), env, number, q)
				if (err1 == nil) != (err2 == nil) {
					rt.Fatalf("%v, and the database says %v", err1, err2)
				}
				if len(got.Items)+len(want.Items) == 0 { // nil or empty
					got.Items, want.Items = nil, nil
				}
				if !reflect.DeepEqual(got, want) {
					rt.Fatalf("\n got %v\nwant %v", got, want)
				}
			})
		})
		if answered == 0 {
			t.Errorf("%s: no query was answered in memory", name)
		}
		for _, number := range numbers {
			v := get(s.VersionNow(t.Context(), env, number))(t)
			all := get(store.ListedByDatabase(s, t.Context(), env, number, intent.ListQuery{}))(t)
			counts := map[members.Count]int{}
			for _, item := range all.Items {
				counts[members.Count{Type: item.ID.Type, Standing: string(item.Standing)}]++
			}
			var want []members.Count
			for c, n := range counts {
				want = append(want, members.Count{Type: c.Type, Standing: c.Standing, Count: n})
			}
			got := v.Counts()
			for _, list := range [][]members.Count{want, got} {
				slices.SortFunc(list, func(a, b members.Count) int {
					return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Standing, b.Standing))
				})
			}
			if len(want) < 4 || !slices.Equal(got, want) {
				t.Errorf("%s: version %d is counted %v, want %v", name, number, got, want)
			}
		}
	}
}

// versionsOf releases three versions whose resources have names of some words, and gives the resources of the last
// various states. It stores a fourth that is not released.
func versionsOf(
	t *testing.T, s *store.Store, url string, words []string,
) (intent.EnvironmentID, []int, []intent.ResourceID) {
	t.Helper()
	env, random := newEnvironment(t, s), rand.New(rand.NewPCG(1, 2))
	word := func() string { return words[random.IntN(len(words))] }
	all := map[intent.ResourceID]intent.Resource{}
	for i := range 150 {
		r := resources(1)[0]
		r.ID = intent.ResourceID{
			Type: "m::T" + strings.Trim(word(), " _%-"), Agent: "host" + word(), Attribute: "name",
			Value: fmt.Sprint(word(), i%40, word()),
		}
		all[r.ID] = r
	}
	ids := slices.SortedFunc(maps.Keys(all), func(a, b intent.ResourceID) int {
		return strings.Compare(a.String(), b.String())
	})
	var numbers []int
	for v := range 4 {
		var rs []intent.Resource
		for i, id := range ids {
			if (i+v)%10 == 0 {
				continue
			}
			r := all[id]
			if (i+v)%3 == 0 {
				r = changed([]intent.Resource{r}, 0, fmt.Sprintf("%064d", v))[0]
			}
			rs = append(rs, r)
		}
		if v == 3 {
			numbers = append(numbers, get(s.StoreVersion(t.Context(), version(env, rs), epoch))(t))
			continue
		}
		numbers = append(numbers, release(t, s, env, rs))
	}
	conn := get(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(context.Background())
	get(conn.Exec(t.Context(), `UPDATE resource_state SET last_run_at = now(), is_deploying = resource % 11 = 0,
		last_run = CASE WHEN resource % 7 = 0 THEN 'failed' WHEN resource % 5 = 0 THEN 'skipped' ELSE 'successful' END,
		compliance = CASE WHEN resource % 7 = 0 THEN 'non_compliant' ELSE 'compliant' END
		WHERE environment = $1`, env))(t)
	return env, numbers, ids
}

// memberQuery draws a query of the list, mostly about names that there are.
func memberQuery(rt *rapid.T, ids []intent.ResourceID, words []string) intent.ListQuery {
	id := rapid.SampledFrom(ids)
	other := rapid.SampledFrom(append([]string{"host", "m::T", "1", "no such", "k"}, words...))
	standing := rapid.SampledFrom([]string{"deployed", "deploying", "failed", "skipped", "other", "absent", "x"})
	text := func(field string) string {
		if rapid.IntRange(0, 4).Draw(rt, "any text") == 0 {
			return other.Draw(rt, field)
		}
		switch x := id.Draw(rt, field); field {
		case "resource_type":
			return x.Type
		case "agent":
			return x.Agent
		case "resource_id_value":
			return x.Value
		case "status":
			return standing.Draw(rt, field)
		default:
			return x.String()
		}
	}
	q := intent.ListQuery{
		Limit: rapid.IntRange(0, 30).Draw(rt, "limit"), Desc: rapid.Bool().Draw(rt, "desc"),
		Sort: rapid.SampledFrom(store.VersionMemberList.SortFields()).Draw(rt, "sort"),
	}
	for _, f := range store.VersionMemberList.Fields {
		if f.Filter != store.NoFilter && rapid.IntRange(0, 3).Draw(rt, "filtered") == 0 {
			if q.Filters == nil {
				q.Filters = map[string][]string{}
			}
			for range rapid.IntRange(1, 3).Draw(rt, "values") {
				q.Filters[f.Name] = append(q.Filters[f.Name], text(f.Name))
			}
		}
	}
	if side := rapid.IntRange(0, 2).Draw(rt, "side"); side > 0 {
		bound := &intent.Bound{}
		if rapid.IntRange(0, 19).Draw(rt, "has a value") > 0 {
			bound.Value = new(text(q.Sort))
		}
		if rapid.Bool().Draw(rt, "has an id") {
			bound.ID = text("resource_id")
		}
		if side == 1 {
			q.After = bound
		} else {
			q.Before = bound
		}
	}
	return q
}

// A version that is deleted is gone, also for those who have just looked at it; and a version that is released is
// looked at anew.
func TestVersionNowFollowsTheVersion(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.Open(t), t.Context()
	env, rs := newEnvironment(t, s), resources(8)
	first := release(t, s, env, rs)
	counted := func(number int) map[string]int {
		out := map[string]int{}
		for _, c := range get(s.VersionNow(ctx, env, number))(t).Counts() {
			out[c.Standing] += c.Count
		}
		return out
	}
	second := get(s.StoreVersion(ctx, version(env, changed(rs, 0, "other")[:7]), epoch))(t)
	for _, one := range []struct {
		number int
		want   map[string]int
	}{{first, map[string]int{"available": 8}}, {second, map[string]int{"available": 6, "other": 1}}} {
		if got := counted(one.number); !maps.Equal(got, one.want) {
			t.Errorf("before the release of %d: %d has %v, want %v", second, one.number, got, one.want)
		}
	}
	must(t, s.ReleaseVersion(ctx, env, second, epoch))
	for _, one := range []struct {
		number int
		want   map[string]int
	}{{first, map[string]int{"available": 6, "other": 1, "absent": 1}}, {second, map[string]int{"available": 7}}} {
		if got := counted(one.number); !maps.Equal(got, one.want) {
			t.Errorf("after the release of %d: %d has %v, want %v", second, one.number, got, one.want)
		}
	}
	must(t, s.DeleteEnvironment(ctx, env))
	_, err := s.VersionNow(ctx, env, first)
	want(t, err, fault.NotFound)
}
