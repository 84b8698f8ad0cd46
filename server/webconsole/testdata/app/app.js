// Asks what the reference's console asks first, and shows what it got as text.
import { features } from "./config.js";

const graphql = async (query, variables) => {
  const answer = await fetch(window.prefix + "/api/v2/graphql", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ query, variables }),
  });
  const body = await answer.json();
  if (body.data.errors) throw new Error(body.data.errors.join("; "));
  return body.data.data;
};

const run = async () => {
  const { environments } = await graphql("{ environments { edges { node { name id halted isExpertMode isCompiling } } } }");
  const environment = environments.edges.find((e) => e.node.name === "production").node.id;
  const notifications = await graphql(`{ notifications(filter: {cleared: false, environment: "${environment}"},
    orderBy: [{key: "created", order: "desc"}]) { edges { node { title severity read } } } }`);
  const query = `query($filter: ResourceFilter!, $first: Int, $after: String, $orderBy: [StrawberryOrder!],
    $environment: String!) {
    resources(filter: $filter, first: $first, after: $after, orderBy: $orderBy) { totalCount
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      edges { node { resourceId resourceType agent resourceIdValue requiresLength
        state { isDeploying lastHandlerRun compliance blocked lastHandlerRunAt isOrphan } } } }
    resourceSummary(environment: $environment) { lastHandlerRun blocked compliance isDeploying totalCount } }`;
  const pages = [];
  let after = null;
  do {
    const page = await graphql(query, {
      environment, first: 50, after, orderBy: [{ key: "resource_type", order: "asc" }],
      filter: { environment, isOrphan: false },
    });
    pages.push(page);
    after = page.resources.pageInfo.hasNextPage ? page.resources.pageInfo.endCursor : null;
  } while (after);
  const schema = await (await fetch(window.prefix + "/api/v2/graphql/schema")).json();
  const status = await (await fetch(window.prefix + "/api/v1/serverstatus")).json();
  return {
    environments: environments.edges.length,
    notifications: notifications.notifications.edges.length,
    pages: pages.length,
    resources: pages.flatMap((p) => p.resources.edges).length,
    total: pages[0].resourceSummary.totalCount,
    queryType: schema.data.__schema.queryType.name,
    product: status.data.product, features, at: location.pathname,
  };
};

run().then(
  (got) => { document.getElementById("root").textContent = JSON.stringify(got); },
  (wrong) => { document.getElementById("root").textContent = "failed: " + wrong; },
);
