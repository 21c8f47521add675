#[larder_macros::resource("weather://{city}")]
async fn missing() -> String {
    String::new()
}

#[larder_macros::resource("weather://{city}")]
async fn surplus(city: String, country: String) -> String {
    city + &country
}

#[larder_macros::resource]
async fn nowhere() -> String {
    String::new()
}

#[larder_macros::resource("docs://all", cache(5, shared))]
async fn shared() -> String {
    String::new()
}

#[larder_macros::prompt]
struct NoFunction;

fn main() {}
