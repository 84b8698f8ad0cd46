package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ordain.dev/ordain/internal/testing/tool"
)

// Someone looks for the failed files, chooses all of them, is asked with numbers, deploys them, and reads that it was
// done. The pages on the way are accessible; so are the review of a pull request and the filtered page of a version.
func TestJourneyDeployWhatAFilterChose(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := liveRich(t)
	r.Start(t)
	b := browse(t, h)
	b.look(1280, 900, "light")
	env := "/e/" + r.Production.ID.String()
	b.open(env + "/resources")
	pick := func(facet string) {
		b.do(chromedp.Click(chromedp.JSPath(`[...document.querySelectorAll('.facets a')]
			.find(x => x.textContent.trim().startsWith('` + facet + `'))`)))
	}
	b.until(`document.querySelector('.facets a')`)
	pick("fs::File")
	b.until(`location.search.includes('is-type=fs%3A%3AFile') && document.querySelector('.facets a')`)
	pick("failed")
	b.until(`location.search.includes('status=failed') && document.querySelector('.bulk')`)
	b.accessible("a filtered list")
	b.do(chromedp.Click(chromedp.CSS(`.bulk input[name="all"]`)),
		chromedp.Click(chromedp.CSS(`.bulk button[value="deploy"]`)))
	b.until(`document.querySelector('#confirm-title')?.textContent.startsWith('Deploy what is not as intended among')`)
	b.accessible("the question before an action")
	b.do(chromedp.Click(chromedp.CSS(`#confirm button.primary`)))
	b.until(`document.querySelector('.banner.done') !== null && location.search.includes('status=failed')`)
	if told := r.Told(); !slices.ContainsFunc(told, func(s string) bool {
		return strings.HasPrefix(s, "deploy full=false") && strings.Contains(s, r.FailedFile.String())
	}) {
		t.Errorf("the deployer was told %v", told)
	}
	b.open(env + "/pulls/7")
	b.until(`document.querySelectorAll('.checks li').length > 4`)
	b.accessible("the review of a pull request")
	b.open(env + "/versions/7?type=fs::File")
	b.until(`document.querySelector('#f-status')`)
	b.accessible("the filtered page of a version")
	b.look(390, 844, "dark")
	b.open(env + "/pulls/7")
	b.fits("the review of a pull request")
	b.accessible("the review of a pull request on a phone")
}
