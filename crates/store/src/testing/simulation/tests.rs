use super::Simulation;

/// Runs a simulation to the end, with checks of all owners between the rounds.
async fn run(seed: u64, owners: u32, rounds: u64) -> Simulation {
    let mut simulation = Simulation::new(seed, owners).await;
    simulation.fill().await;
    simulation.check(owners).await;

    for _ in 0..rounds {
        simulation.run(2 * u64::from(owners)).await;
        simulation.check(owners).await;
    }

    simulation.finish(owners).await;
    simulation
}

#[tokio::test]
async fn two_thousand_owners_keep_their_quotas_expiries_and_announcements() {
    let counts = run(20_261_123, 2000, 5).await.counts();
    assert_eq!(counts.events, 22_000);
    let happened = [counts.refused, counts.expired, counts.changes, counts.overflows];
    assert!(happened.iter().all(|count| *count > 0), "something never happened: {counts:?}");
}

#[tokio::test]
async fn a_seed_determines_the_simulation() {
    let first = run(7, 64, 3).await;
    let again = run(7, 64, 3).await;
    assert_eq!(first.counts(), again.counts());
    assert_ne!(first.counts(), run(8, 64, 3).await.counts());
}
